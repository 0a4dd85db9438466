"""CPU and GPU utilisation over time, with steps and the chosen operator's calls."""

from __future__ import annotations

from typing import Any

import pandas as pd

from maiprof_nb.analysis.metrics import metric_series
from maiprof_nb.analysis.steps import steps
from maiprof_nb.analysis.utilisation import instances, utilisation
from maiprof_nb.timebase import TimeWindow
from maiprof_widgets import escaping
from maiprof_widgets.figures.panels import Panel, panel_title
from maiprof_widgets.figures.theme import theme
from maiprof_widgets.figures.utilisation import gpu_panel, host_panel, marks_panel
from maiprof_widgets.views.curves import BINS, CurvesView

_MAX_STEPS = 2000
_MARKS = 2  # the panel of steps and calls
_MEASURED_USE = {"utilization.gpu", "sm", "DCGM_FI_DEV_GPU_UTIL", "GPUTL"}


class UtilisationView(CurvesView):
    """Reads ``link.window``, ``link.selection`` and ``link.dark``; sets ``link.window``."""

    def panels(self, window: TimeWindow) -> list[Panel]:
        """GPU, host, and steps with marks."""
        use = utilisation(self.session, window=window, bins=BINS)
        series = metric_series(self.session, window=window, bins=BINS)
        measured = series[series["counter"].isin(_MEASURED_USE) & (series["unit"] == "%")]
        colours = theme(dark=self.link.dark)
        return [
            gpu_panel(use, measured),
            host_panel(use),
            marks_panel(
                self._steps(window), self._marks(window), self._chosen, (colours.step, colours.mark)
            ),
        ]

    @property
    def _chosen(self) -> str | None:
        selection = self.link.selection
        if selection is None or selection.table != "operators" or selection.name is None:
            return None
        return escaping.shortened(selection.name, 60)

    def _steps(self, window: TimeWindow) -> pd.DataFrame:
        found = steps(self.session)
        inside = (found["ts_ns"] < window.end_ns) & (found["end_ns"] > window.start_ns)
        return found[inside].head(_MAX_STEPS)

    def _marks(self, window: TimeWindow) -> pd.DataFrame:
        selection = self.link.selection
        if self._chosen is None or selection is None or selection.name is None:
            return pd.DataFrame({"ts_ns": [], "end_ns": [], "calls": []}, dtype="int64")
        return instances(self.session, selection.name, window=window)

    def _on_selection(self, _change: Any) -> None:
        self.redraw()
        with self.status.guard():
            colours = theme(dark=self.link.dark)
            title = panel_title(self.panels(self.shown)[_MARKS], colours.series)
            with self.figure.batch_update():
                self.figure.update_annotations(text=title, selector={"name": f"title {_MARKS + 1}"})
