"""Operators ranked by cost: sort, search, choose."""

from __future__ import annotations

from typing import Any

import ipywidgets
import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis.operator_ranking import operator_calls, rank_calls
from maiprof_nb.session import Session
from maiprof_widgets import escaping
from maiprof_widgets.link import LinkState, Selection
from maiprof_widgets.views.delayed import Delayed
from maiprof_widgets.views.status import StatusLine
from maiprof_widgets.views.table import HeaderSort, paged_table

MAX_ROWS = 5000
_QUIET_S = 0.25


class RankingView(ipywidgets.VBox):
    """Reads ``link.window``; reads and sets ``link.selection``.

    Parameters
    ----------
    session : Session
        What to rank.
    link : LinkState
        Shared with the other views.
    """

    def __init__(self, session: Session, link: LinkState) -> None:
        self.session, self.link = session, link
        self.status = StatusLine()
        self.caption = ipywidgets.HTML()
        self.chosen = ipywidgets.HTML()
        self.by = ipywidgets.ToggleButtons(
            options=[("by name", "name"), ("by name and shapes", "shapes")],
            description="",
            style={"button_width": "auto"},
        )
        self._updating = False
        self.ranking = pd.DataFrame()
        with self.status.guard():
            self.ranking = self._ranked()
        self.table = paged_table(
            _shown(self.ranking), text_columns=2, select="single", selected_rows=[]
        )
        self._say()
        shown = [self.caption, self.by, self.table, HeaderSort(), self.chosen, self.status]
        if operator_calls(session).empty:
            shown = [self.status]
            self.status.show(
                "No operators were recorded, so there is nothing to rank. Load a trace recorded "
                "with torch.profiler.profile and ProfilerActivity.CPU.",
                missing=True,
            )
        super().__init__(shown)
        self.add_class("maiprof-ranking")
        self._later = Delayed(self.refresh, _QUIET_S)
        self.table.observe(self._on_row, "selected_rows")
        self.by.observe(lambda _change: self.refresh(), "value")
        link.observe(lambda _change: self._later.request(), "window")
        link.observe(self._on_selection, "selection")

    def refresh(self) -> None:
        """Rank what overlaps the current window."""
        with self.status.guard():
            self.ranking = self._ranked()
            self._updating = True
            try:
                self.table.update(
                    _shown(self.ranking), selected_rows=self._row_of(self.link.selection), order=[]
                )
            finally:
                self._updating = False
            self._describe_chosen()
        self._say()

    def _ranked(self) -> pd.DataFrame:
        calls = operator_calls(self.session)
        window = self.link.window
        if window is not None:
            end = calls["ts_ns"] + calls["dur_ns"]
            calls = calls[(calls["ts_ns"] < window.end_ns) & (end > window.start_ns)]
        return rank_calls(calls, by=self.by.value)

    def _say(self) -> None:
        count, shown = len(self.ranking), min(len(self.ranking), MAX_ROWS)
        part = "" if shown == count else f", the first {units.count(shown)} shown"
        where = "in the window shown" if self.link.window is not None else "in the whole recording"
        self.caption.value = (
            f"<b>Operators and named ranges</b> {where}: {units.count(count)} rows{part}. "
            "Total = with callees, self = without: if total is high and self low, look at what it "
            "calls; if self is high, you have arrived. Many cheap calls are another problem than "
            "one dear call. Times are as profiled: compare only with other profiled runs."
        )
        if self.ranking.empty:
            self.status.show("No operator ran in this window. Zoom out to see some.", missing=True)

    def _on_row(self, change: Any) -> None:
        if self._updating:
            return
        with self.status.guard():
            rows = change["new"]
            if not rows:
                if self.link.selection is not None and self.link.selection.table == "operators":
                    self.link.selection = None
                return
            self.link.selection = Selection(
                "operators", name=str(self.ranking["name"].iloc[rows[0]])
            )

    def _on_selection(self, _change: Any) -> None:
        with self.status.guard():
            rows = self._describe_chosen()
            name = self.link.selection.name if self.link.selection is not None else None
            shown = [i for i in self.table.selected_rows if i < len(self.ranking)]
            if [self.ranking["name"].iloc[i] for i in shown] == [name]:
                return
            if rows != list(self.table.selected_rows):
                self._updating = True
                try:
                    self.table.selected_rows = rows
                finally:
                    self._updating = False

    def _describe_chosen(self) -> list[int]:
        """Say the figures of the chosen row; return where it is."""
        rows = self._row_of(self.link.selection)
        self.chosen.value = self._in_words(rows[0]) if rows else ""
        return rows

    def _row_of(self, selection: Selection | None) -> list[int]:
        if selection is None or selection.table != "operators" or self.ranking.empty:
            return []
        matches = (self.ranking["name"] == selection.name).to_numpy().nonzero()[0]
        return [int(matches[0])] if len(matches) and matches[0] < MAX_ROWS else []

    def _in_words(self, row: int) -> str:
        one = self.ranking.iloc[row]
        device = (
            f"; device work launched: {units.duration(one.device_total_ns)}, "
            f"itself {units.duration(one.device_self_ns)}"
            if one.device_total_ns
            else ""
        )
        return (
            f'<div class="maiprof-chosen"><b>{escaping.shortened(one["name"], 120)}</b>: '
            f"{units.count(one.calls)} calls, {units.duration(one.mean_ns)} each "
            f"({units.duration(one.min_ns)} to {units.duration(one.max_ns)}); "
            f"total {units.duration(one.total_ns)}, self {units.duration(one.self_ns)}{device}. "
            "Its calls are marked in the timeline.</div>"
        )


def _shown(ranking: pd.DataFrame) -> pd.DataFrame:
    """The columns people read, in units that compare down a column."""
    if ranking.empty:
        return pd.DataFrame({"Name": []})
    top = ranking.head(MAX_ROWS)
    columns = {
        "Name": [escaping.visible(name) for name in top["name"]],
        "Kind": top["kind"].astype("str"),
    }
    if "input_dims" in top:
        columns["Input shapes"] = top["input_dims"].astype("str").fillna("")
    columns |= {
        "Calls": top["calls"],
        "Self (ms)": (top["self_ns"] / 1e6).round(3),
        "Self (%)": (top["self_share"] * 100).round(1),
        "Total (ms)": (top["total_ns"] / 1e6).round(3),
        "Mean (µs)": (top["mean_ns"] / 1e3).round(2),
    }
    if ranking["device_total_ns"].any():
        columns |= {
            "Device self (ms)": (top["device_self_ns"] / 1e6).round(3),
            "Device self (%)": (top["device_share"] * 100).round(1),
            "Device total (ms)": (top["device_total_ns"] / 1e6).round(3),
        }
    return pd.DataFrame(columns)
