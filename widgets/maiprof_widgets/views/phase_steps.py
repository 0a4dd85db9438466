"""Every step of the training loop by phase; a bar leads to its step."""

from __future__ import annotations

from typing import Any

import ipywidgets
import pandas as pd
import plotly.graph_objects as go

from maiprof_nb.analysis.phase_steps import phase_steps
from maiprof_nb.analysis.step_outliers import step_outliers
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow
from maiprof_widgets.figures.phase_steps import binned, phase_steps_figure
from maiprof_widgets.link import LinkState
from maiprof_widgets.views._plot import FitView, figure_widget, repainted
from maiprof_widgets.views.status import StatusLine

_HINT = (
    '<div class="maiprof-sub">Device work counts for the step and phase that launched it. '
    "Click a bar: all views show that step.</div>"
)


class PhaseStepsView(ipywidgets.VBox):
    """Stacked bars of `maiprof_nb.analysis.phase_steps`, slow steps marked.

    Reads ``link.ranks`` (the first of them is shown) and ``link.dark``; a click on a bar sets
    ``link.window`` to its steps.

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
        self.bars = pd.DataFrame()
        shown: list[ipywidgets.Widget] = []
        with self.status.guard():
            self.found = phase_steps(session)
            self.figure = figure_widget(self._figure())
            for trace in self.figure.data:
                trace.on_click(self._on_click)
            shown = [FitView(), self.figure, ipywidgets.HTML(_HINT)]
            link.observe(lambda _change: self._redraw(), ["ranks", "dark"])
        super().__init__([*shown, self.status])
        self.add_class("maiprof-curves")

    def _figure(self) -> go.Figure:
        ranks = self.link.ranks
        rows = self.found if not ranks else self.found[self.found["rank"].isin(ranks)]
        rows = rows if len(rows) else self.found
        recording = int(rows["recording"].iloc[0])
        self.bars = binned(rows[rows["recording"] == recording])
        return phase_steps_figure(self.bars, self._outliers(recording), dark=self.link.dark)

    def _outliers(self, recording: int) -> pd.DataFrame:
        try:
            found = step_outliers(self.session)
        except NotAnswerableError:  # too few steps to say which are slow
            return pd.DataFrame({"step": [], "excess_ns": []}, dtype="int64")
        return found[found["recording"] == recording]

    def _on_click(self, _trace: Any, points: Any, _state: Any) -> None:
        if not points.xs:
            return
        with self.status.guard():
            rows = self.bars[self.bars["bar"] == int(points.xs[0])]
            if len(rows):
                self.link.window = TimeWindow(int(rows["ts_ns"].min()), int(rows["end_ns"].max()))

    def _redraw(self) -> None:
        with self.status.guard():
            repainted(self.figure, self._figure())
