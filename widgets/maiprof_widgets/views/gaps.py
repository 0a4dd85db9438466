"""The longest gaps with what the host did in them; a row leads there."""

from __future__ import annotations

from typing import Any

import ipywidgets
import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis.gap_causes import CAUSES, cause_column, gap_causes, idle_by_cause
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow
from maiprof_widgets import escaping
from maiprof_widgets.link import LinkState
from maiprof_widgets.views.status import StatusLine
from maiprof_widgets.views.table import paged_table

MAX_ROWS = 500
_WHOSE = {
    "call": "Your line, with most time in the gap",
    "forward": "In the backward pass of your line",
    "launch": "None of your lines ran in it; the launch that ends it came from",
}
_MARK = {"forward": " (its backward)", "launch": " (the next launch)"}
_MARGIN = 0.25  # of a gap's length, shown on either side of it


class GapsView(ipywidgets.VBox):
    """A table of `maiprof_nb.analysis.gap_causes`, the longest first.

    Reads ``link.window`` (gaps that meet it; all by default). A click on a row sets it round
    that gap, ``link.moment_ns`` to its beginning, and says below the table what is known of it.

    Parameters
    ----------
    session : Session
        What was recorded.
    link : LinkState
        Shared with the other views.
    """

    def __init__(self, session: Session, link: LinkState) -> None:
        self.session, self.link = session, link
        self.status = StatusLine()
        self.found = pd.DataFrame()
        self._asked: TimeWindow | None = None
        shown: list[ipywidgets.Widget] = []
        with self.status.guard():
            self.found = gap_causes(session)
            self.summary = ipywidgets.HTML(_summary(idle_by_cause(session)))
            self.rows = self._chosen()
            self.chosen = ipywidgets.HTML()
            self.table = paged_table(
                _shown(self.rows), text_columns=3, select="single", selected_rows=[]
            )
            self.table.observe(self._on_row, "selected_rows")
            link.observe(self._on_window, "window")
            shown = [self.summary, self.table, self.chosen]
        super().__init__([*shown, self.status])
        self.add_class("maiprof-ranking")

    def _chosen(self) -> pd.DataFrame:
        window = self.link.window
        if window is None:
            return self.found.head(MAX_ROWS)
        end = self.found["ts_ns"] + self.found["dur_ns"]
        meets = (self.found["ts_ns"] < window.end_ns) & (end > window.start_ns)
        return self.found[meets].head(MAX_ROWS)

    def _on_window(self, _change: Any) -> None:
        if self.link.window == self._asked:  # the row that was clicked stays in its table
            return
        with self.status.guard():
            self.rows = self._chosen()
            self.chosen.value = ""
            self.table.update(_shown(self.rows), selected_rows=[])

    def _on_row(self, change: Any) -> None:
        if not change["new"]:
            return
        with self.status.guard():
            row = self.rows.iloc[int(change["new"][0])]
            self._asked = _around(row, self.session.window)
            self.chosen.value = _said(row)
            self.link.window = self._asked
            self.link.moment_ns = int(row["ts_ns"])


def _around(row: pd.Series, span: TimeWindow) -> TimeWindow:
    margin = int(row["dur_ns"] * _MARGIN)
    start, end = int(row["ts_ns"]) - margin, int(row["ts_ns"] + row["dur_ns"]) + margin
    return TimeWindow(start, end).intersect(span)


def _said(row: pd.Series) -> str:
    """A gap in sentences: where, during what, on which thread, whose line."""
    parts = {cause: int(row[cause_column(cause)]) for cause in CAUSES}
    spent = ", ".join(
        f"{cause} {units.duration(ns)} ({units.percent(ns / max(row['dur_ns'], 1))})"
        for cause, ns in sorted(parts.items(), key=lambda part: -part[1])
        if ns >= row["dur_ns"] * 0.005
    )
    device = "The GPU" if pd.isna(row["device"]) else f"GPU {row['device']}"
    lines = [
        f"<b>{escaping.text(device)} idle for {units.duration(row['dur_ns'])}</b>, "
        f"from {units.duration(row['ts_ns'])} on, during: {escaping.text(spent)}."
    ]
    thread = "not recorded: which launch ended the gap is not known"
    if not pd.isna(row["pid"]):
        thread = f"{row['pid']} / {row['tid']}"
        thread += ", which was waiting for the GPU when the gap began" if row["after_sync"] else ""
    lines.append(f"Host thread (pid / tid): {escaping.text(thread)}.")
    if isinstance(row["user_line"], str):
        lines.append(f"{_WHOSE[row['line_of']]}: <code>{escaping.text(row['user_line'])}</code>")
    if isinstance(row["line"], str) and row["line"] != row["user_line"]:
        lines.append(f"Innermost function: <code>{escaping.text(row['line'])}</code>")
    return "".join(f"<div>{line}</div>" for line in lines)


def _summary(found: pd.DataFrame) -> str:
    """Idle time by cause in a sentence a device."""
    said = []
    for (rank, device), rows in found.groupby(["rank", "device"], dropna=False):
        where = "GPU" if pd.isna(device) else f"GPU {device}"
        where = where if pd.isna(rank) else f"Rank {rank}, {where}"
        parts = ", ".join(
            f"{row.cause} {units.duration(row.idle_ns)} ({units.percent(row.idle_share)})"
            for row in rows.itertuples()
            if row.idle_share >= 0.005
        )
        said.append(
            f"<div><b>{escaping.text(where)}</b> idle during: {escaping.text(parts)}.</div>"
        )
    note = (
        '<div class="maiprof-sub">What ran during a gap is not always its cause. '
        "Click a row: all views show that gap.</div>"
    )
    return "".join(said) + note


def _shown(rows: pd.DataFrame) -> pd.DataFrame:
    one_device = rows[["recording", "device"]].drop_duplicates().shape[0] <= 1
    shown = {
        "During it: your code, else the innermost function": [
            _line(user, of, line)
            for user, of, line in zip(rows["user_line"], rows["line_of"], rows["line"], strict=True)
        ],
        "Cause": rows["cause"].astype("str"),
        "Thread": [
            "" if pd.isna(pid) else escaping.visible(f"{pid} / {tid}")
            for pid, tid in zip(rows["pid"], rows["tid"], strict=True)
        ],
        "Starts at (s)": (rows["ts_ns"] / 1e9).round(6),
        "Lasts (ms)": (rows["dur_ns"] / 1e6).round(3),
        "Share of cause (%)": (rows["share"] * 100).round(1),
        "After a wait for the GPU": ["yes" if after else "" for after in rows["after_sync"]],
    }
    if not one_device:
        shown["Device"] = rows["device"].astype("str")
        shown["Rank"] = rows["rank"].astype("str")
    return pd.DataFrame(shown).reset_index(drop=True)


def _line(user: object, of: object, line: object) -> str:
    if isinstance(user, str) and (of != "launch" or not isinstance(line, str)):
        return escaping.visible(user) + _MARK.get(str(of), "")
    return escaping.visible(line) if isinstance(line, str) else ""
