"""Figures of every sampled counter over the window that is looked at."""

from __future__ import annotations

from typing import Any

import ipywidgets
import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis.metrics import metric_summary
from maiprof_nb.analysis.sampled_quantities import QUANTITIES, sampled
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.session import Session
from maiprof_widgets.link import LinkState
from maiprof_widgets.views._grid import grid
from maiprof_widgets.views.metrics import SAMPLE
from maiprof_widgets.views.status import StatusLine

MAX_ROWS = 100
_FIGURES = ("median", "mean", "p95", "maximum")
_HEAD = ("Quantity", "Device", "Counter", "Unit", "Samples", "Median", "Mean", "95 %", "Maximum")


class MetricFiguresView(ipywidgets.VBox):
    """Median, mean over time, 95th percentile and maximum. Reads ``link.window``.

    Parameters
    ----------
    session : Session
        What was sampled.
    link : LinkState
        Shared with the other views.

    Attributes
    ----------
    found : DataFrame
        The rows shown, known quantities first and in their own unit.
    """

    def __init__(self, session: Session, link: LinkState) -> None:
        self.session, self.link = session, link
        self.status, self.table = StatusLine(), ipywidgets.HTML()
        self.found = pd.DataFrame()
        self._fill(None)
        super().__init__([self.table, self.status])
        link.observe(self._fill, "window")

    def _fill(self, _change: Any) -> None:
        text = ""
        with self.status.guard():
            text = self._text()
        self.table.value = text

    def _text(self) -> str:
        if self.session.table("counters").empty:
            raise NotAnswerableError(
                "no GPU metrics were loaded with this recording",
                remedy=f"Record them beside the job, for example with {SAMPLE}, and load "
                "the folder",
            )
        window = self.link.window
        self.found = _in_order(metric_summary(self.session, window=window))
        where = (
            "the whole recording"
            if window is None
            else f"the window shown, {units.duration(window.start_ns)} to "
            f"{units.duration(window.end_ns)}"
        )
        if self.found.empty:
            raise NotAnswerableError(
                f"nothing was sampled in {where}", remedy="Choose a longer window"
            )
        shown = self.found.head(MAX_ROWS)
        more = len(self.found) - len(shown)
        rest = f" {more} more series are not shown." if more else ""
        table = grid(_HEAD, map(_cells, shown.itertuples()))
        return f'<div class="maiprof-sources">Over {where}.{rest}</div>{table}'


def _in_order(summary: pd.DataFrame) -> pd.DataFrame:
    parts = []
    for quantity, known in QUANTITIES.items():
        rows = sampled(summary, quantity)
        rows = rows[rows["scale"].notna()]
        scaled = {name: rows[name] * rows["scale"] for name in _FIGURES}
        parts.append(rows.assign(quantity=quantity, **scaled).assign(unit=known.unit))
    known_rows = pd.concat([part.index.to_series() for part in parts])
    parts.append(summary[~summary.index.isin(known_rows)].assign(quantity=""))
    parts = [part for part in parts if len(part)]
    return pd.concat(parts, ignore_index=True) if parts else summary


def _cells(row: Any) -> list[object]:
    unit = "" if pd.isna(row.unit) else row.unit
    figures = [f"{getattr(row, name):,.2f}" for name in _FIGURES]
    name = row.quantity[:1].upper() + row.quantity[1:]
    return [name, _device(row.device), row.counter, unit, row.samples, *figures]


def _device(name: object) -> str:
    if pd.isna(name):
        return "host"
    return f"GPU {name}" if str(name).isdigit() else str(name)
