"""Text from files -> HTML, never the other way."""

from __future__ import annotations

import html

_SPACES = "\N{NARROW NO-BREAK SPACE}\N{NO-BREAK SPACE}"


def visible(value: object) -> str:
    """Text whose control characters show as a sign, for places that take no HTML."""
    shown = str(value)
    if shown.isprintable():
        return shown
    return "".join(
        c if c.isprintable() or c in _SPACES else "\N{REPLACEMENT CHARACTER}" for c in shown
    )


def text(value: object) -> str:
    """Escape for HTML and for plotly's pseudo-HTML; control characters become visible."""
    return html.escape(visible(value))


def shortened(value: object, length: int = 80) -> str:
    """Escape and keep the end of long paths, the start of long names."""
    shown = str(value)
    if len(shown) > length:
        keep = length - 1
        shown = (
            "\N{HORIZONTAL ELLIPSIS}" + shown[-keep:]
            if "/" in shown
            else shown[:keep] + "\N{HORIZONTAL ELLIPSIS}"
        )
    return text(shown)
