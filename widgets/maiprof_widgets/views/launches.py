"""How fast the host launches, how long launched work waits, and which operators lag behind."""

from __future__ import annotations

from typing import Any

import ipywidgets
import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis.device_activity import require_activity
from maiprof_nb.analysis.launch_bound_operators import launch_bound_operators
from maiprof_nb.analysis.launch_queue import launch_queue
from maiprof_nb.analysis.launch_rate import launch_rate
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.timebase import TimeWindow
from maiprof_widgets import escaping
from maiprof_widgets.figures.launches import launch_panels
from maiprof_widgets.figures.panels import Panel
from maiprof_widgets.views._choice_table import ChoiceTable
from maiprof_widgets.views.curves import CurvesView
from maiprof_widgets.views.delayed import Delayed

MAX_ROWS, MAX_DEVICES = 500, 8
_BINS = 400
_QUIET_S = 0.15
_HINT = (
    "A queue near 0 means that the device waits for the host. Only launches with another of the "
    "thread within 2 ms are compared (more is a stall, not a launch): an operator is launch-bound "
    "where their median work is shorter than their median time to the next; unfilled is by how "
    "much, summed: time that only a queue, another stream or another thread can fill. "
    "Click a row: all views show that operator."
)


class LaunchesView(CurvesView):
    """Curves of `launch_queue` over a table of `launch_bound_operators`.

    Reads ``link.window``, ``link.selection`` and ``link.dark``; sets ``link.window``, and by a
    click on a row ``link.selection``.
    """

    def panels(self, window: TimeWindow) -> list[Panel]:
        """Launch rate, queue and queue delay of each device."""
        require_activity(self.session)
        found = launch_queue(self.session, window=window, bins=_BINS)
        if not (found["value"] > 0).any() and self.session.table("launches").empty:
            raise NotAnswerableError(
                "no launch calls were recorded, so neither their rate nor the queue can be told",
                remedy="Record with ProfilerActivity.CPU beside ProfilerActivity.CUDA",
            )
        return launch_panels(found)

    def beneath(self) -> list[ipywidgets.Widget]:
        """The rates in words, and the operators."""
        self._later: Delayed | None = None
        if self.status.value:
            return []
        words, rows = self._asked()
        self.words = ipywidgets.HTML(words)
        self.table = ChoiceTable(self.link, *rows)
        self._later = Delayed(self._refresh, _QUIET_S)
        return [self.words, self.table]

    def _on_window(self, change: Any) -> None:
        super()._on_window(change)
        if self._later is not None:
            self._later.request()

    def _asked(self) -> tuple[str, tuple[pd.DataFrame, list[str]]]:
        """The words and the rows of the table for what is looked at now."""
        window = self.link.window
        operators = launch_bound_operators(self.session, window=window)
        return _words(launch_rate(self.session, window=window)), _rows(operators)

    def _refresh(self) -> None:
        with self.status.guard():
            self.words.value, rows = self._asked()
            self.table.show(*rows)


def _rows(found: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """What people read, and what each row names."""
    rows = found.head(MAX_ROWS)
    names = rows["name"].astype("str").tolist()
    shown = pd.DataFrame(
        {
            "Operator": [escaping.visible(name) for name in names],
            "Launch-bound": ["yes" if bound else "" for bound in rows["launch_bound"]],
            "Launches": rows["launches"],
            "Launches/s": rows["launches_per_s"].round(1),
            "Another within 2 ms": rows["compared"],
            "Work of one launch, median (µs)": (rows["median_work_ns"] / 1e3).round(2),
            "To the next launch, median (µs)": (rows["median_interval_ns"] / 1e3).round(2),
            "Work shorter than that (%)": (rows["short_share"] * 100).round(1),
            "Unfilled (ms)": (rows["unfilled_ns"] / 1e6).round(3),
        }
    )
    return shown.reset_index(drop=True), names


def _words(rates: pd.DataFrame) -> str:
    said = []
    for row in rates.head(MAX_DEVICES).itertuples():
        device = "GPU" if pd.isna(row.device) else f"GPU {row.device}"
        where = device if pd.isna(row.rank) else f"Rank {row.rank}, {device}"
        lost = f" ({units.count(row.unlaunched)} more have none)" if row.unlaunched else ""
        said.append(
            f"<div><b>{escaping.text(where)}</b>: {units.count(row.launches)} launches "
            f"({units.count(row.launches_per_s)}/s) for "
            f"{units.count(row.work - row.unlaunched)} pieces of work{lost}; "
            f"median work {units.duration(row.median_work_ns)}, median time to the next launch "
            f"{units.duration(row.median_interval_ns)}; queue delay "
            f"{units.duration(row.median_queue_delay_ns)} at the median, "
            f"{units.duration(row.p95_queue_delay_ns)} at 95 %.</div>"
        )
    if len(rates) > MAX_DEVICES:
        said.append(f"<div>and {len(rates) - MAX_DEVICES} more devices</div>")
    said = said or ["<div>No device work in the time shown.</div>"]
    return "".join(said) + f'<div class="maiprof-sub">{escaping.text(_HINT)}</div>'
