"""CPU and GPU utilisation over time, with steps and the chosen operator's calls."""

from __future__ import annotations

from typing import Any

import pandas as pd

from maiprof_nb.analysis.metrics import metric_series
from maiprof_nb.analysis.sampled_quantities import sampled
from maiprof_nb.analysis.steps import steps
from maiprof_nb.analysis.utilisation import HOST_TABLES, instances, utilisation
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.timebase import TimeWindow
from maiprof_widgets import escaping
from maiprof_widgets.figures.panels import Panel, panel_title
from maiprof_widgets.figures.theme import theme
from maiprof_widgets.figures.utilisation import cpu_panel, gpu_panel, host_panel, marks_panel
from maiprof_widgets.link import Selection
from maiprof_widgets.views._makers import as_call
from maiprof_widgets.views.curves import BINS, CurvesView

_MAX_STEPS = 2000
_LEAST_MARK = 500  # of the width of the panel: about two pixels
_MARKED = {
    "operators": HOST_TABLES,
    "launches": ("launches",),
    "kernels": ("kernels",),
    "python_calls": ("python_calls",),
}


class UtilisationView(CurvesView):
    """Reads ``link.window``, ``link.selection`` and ``link.dark``; sets ``link.window``.

    Of a selected allocation the one call that made it is marked.
    """

    def panels(self, window: TimeWindow) -> list[Panel]:
        """GPU, host as measured and as recorded, and steps with marks."""
        use = utilisation(self.session, window=window, bins=BINS)
        series = metric_series(self.session, window=window, bins=BINS)
        measured, cpu = (sampled(series, f"{what} utilisation") for what in ("gpu", "cpu"))
        colours = theme(dark=self.link.dark)
        if use.empty and series.empty:
            raise NotAnswerableError(
                "this session holds neither a trace nor GPU metrics, so there is no utilisation",
                remedy="Load the folder that holds the job's trace (torch.profiler.profile with "
                "ProfilerActivity.CPU and CUDA) beside this file",
            )
        found = [gpu_panel(use, measured)]
        found += [cpu_panel(cpu)] if len(cpu) else []
        found += [host_panel(use)] if len(use) or cpu.empty else []
        if use.empty:
            return found
        marks = self._steps(window), self._marks(window)
        hues, least_ns = (colours.step, colours.mark), window.dur_ns // _LEAST_MARK
        return [*found, marks_panel(*marks, self._chosen, hues, least_ns)]

    @property
    def _selection(self) -> Selection | None:
        return as_call(self.session, self.link.selection)

    @property
    def _chosen(self) -> str | None:
        selection = self._selection
        if selection is None or selection.table not in _MARKED or selection.name is None:
            return None
        return escaping.shortened(selection.name, 60)

    def _steps(self, window: TimeWindow) -> pd.DataFrame:
        found = steps(self.session)
        inside = (found["ts_ns"] < window.end_ns) & (found["end_ns"] > window.start_ns)
        return found[inside].head(_MAX_STEPS)

    def _marks(self, window: TimeWindow) -> pd.DataFrame:
        selection = self._selection
        if self._chosen is None or selection is None or selection.name is None:
            return pd.DataFrame({"ts_ns": [], "end_ns": [], "calls": []}, dtype="int64")
        tables = _MARKED[selection.table]
        return instances(
            self.session,
            selection.name,
            window=window,
            tables=tables,
            row=selection.row,
            recording=selection.recording,
        )

    def _on_selection(self, _change: Any) -> None:
        self.redraw()
        with self.status.guard():
            panels = self.panels(self.shown)
            if not panels[-1].ticks:  # no panel of steps and calls
                return
            title = panel_title(panels[-1], theme(dark=self.link.dark).series)
            with self.figure.batch_update():
                self.figure.update_annotations(
                    text=title, selector={"name": f"title {len(panels)}"}
                )
