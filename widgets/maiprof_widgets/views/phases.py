"""The training loop by phase."""

from __future__ import annotations

import ipywidgets
import plotly.graph_objects as go

from maiprof_nb.analysis.phases import phases
from maiprof_nb.session import Session
from maiprof_widgets.figures.phases import phases_figure
from maiprof_widgets.link import LinkState
from maiprof_widgets.views._plot import FitView, figure_widget, repainted
from maiprof_widgets.views.status import StatusLine


class PhasesView(ipywidgets.VBox):
    """Reads ``link.dark``."""

    def __init__(self, session: Session, link: LinkState) -> None:
        self.session, self.link = session, link
        self.status = StatusLine()
        shown: list[ipywidgets.Widget] = []
        with self.status.guard():
            self.figure = figure_widget(self._figure())
            shown = [FitView(), self.figure]
            link.observe(lambda _change: self._repaint(), "dark")
        super().__init__([*shown, self.status])
        self.add_class("maiprof-curves")

    def _figure(self) -> go.Figure:
        return phases_figure(phases(self.session), dark=self.link.dark)

    def _repaint(self) -> None:
        with self.status.guard():
            repainted(self.figure, self._figure())
