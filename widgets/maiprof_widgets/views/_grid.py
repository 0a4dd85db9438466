"""A small table as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from maiprof_widgets import escaping


def grid(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table of texts; all are escaped."""
    titles = "".join(f"<th>{escaping.text(title)}</th>" for title in head)
    body = "".join(
        f"<tr>{''.join(f'<td>{escaping.text(str(cell))}</td>' for cell in row)}</tr>"
        for row in rows
    )
    return (
        f'<div class="maiprof-sources"><table><thead><tr>{titles}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
