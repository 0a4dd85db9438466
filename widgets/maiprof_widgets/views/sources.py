"""Each source's clock, what was repaired, dropped or guessed in it, and all checks."""

from __future__ import annotations

import ipywidgets
import pandas as pd

from maiprof_nb import units
from maiprof_nb.session import Session
from maiprof_widgets import escaping
from maiprof_widgets.views.trust import checks_table


class SourcesView(ipywidgets.HTML):
    """A folded table of clocks, a list of notes, and a table of checks."""

    def __init__(self, session: Session) -> None:
        parts = f"{_clocks(session)}{_notes(session)}{checks_table(session)}"
        super().__init__(f'<div class="maiprof-sources">{parts}</div>')
        self.layout.width = "100%"


def _clocks(session: Session) -> str:
    rows = "".join(_clock(row) for row in session.clocks.itertuples())
    off = int((~session.clocks["on_axis"]).sum())
    warning = f", {off} not on the common time axis" if off else ""
    return (
        f"<details{' open' if off else ''}><summary>Sources and clocks: "
        f"{len(session.clocks)} file(s){warning}</summary><table><thead><tr>"
        "<th>file</th><th>kind</th><th>rank</th><th>starts at</th><th>alignment</th>"
        "<th>uncertainty</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></details>"
    )


def _clock(row: object) -> str:
    name = _file_name(str(row.source))  # type: ignore[attr-defined]
    rank = "" if pd.isna(row.rank) else str(row.rank)  # type: ignore[attr-defined]
    known = row.uncertainty_ns  # type: ignore[attr-defined]
    uncertainty = (
        "not stated"
        if pd.isna(known)
        else f"± {units.duration(int(known))}"
        if known
        else "same clock"
    )
    place = units.duration(row.offset_ns) if row.on_axis else "own axis"  # type: ignore[attr-defined]
    cells = (name, row.kind, rank, place, row.origin, uncertainty)  # type: ignore[attr-defined]
    return "<tr>" + "".join(f"<td>{escaping.text(cell)}</td>" for cell in cells) + "</tr>"


def _file_name(source: str) -> str:
    return source.replace("\\", "/").rsplit("/", 1)[-1]


def _notes(session: Session) -> str:
    notes = session.notes
    if not notes:
        return "<div>Everything in the files was read as it stands.</div>"
    items = "".join(
        f"<li><code>{escaping.text(note.code)}</code> ({units.count(note.count)}) "
        f"{escaping.text(_file_name(session.recordings[number].source))}: "
        f"{escaping.text(note.text)}</li>"
        for number, note in notes
    )
    return (
        f"<details><summary>Notes: {len(notes)} thing(s) repaired, dropped, guessed or missing"
        f"</summary><ul>{items}</ul></details>"
    )
