"""The training loop by phase."""

from __future__ import annotations

from typing import Any

import ipywidgets
import plotly.graph_objects as go

from maiprof_nb.analysis.phases import phases
from maiprof_nb.session import Session
from maiprof_widgets.figures.phases import phases_figure
from maiprof_widgets.link import LinkState
from maiprof_widgets.views.status import StatusLine


class PhasesView(ipywidgets.VBox):
    """Reads ``link.dark``."""

    def __init__(self, session: Session, link: LinkState) -> None:
        self.session, self.link = session, link
        self.status = StatusLine()
        shown: list[ipywidgets.Widget] = []
        with self.status.guard():
            self.figure = go.FigureWidget(phases_figure(phases(session), dark=link.dark))
            shown = [self.figure]
            link.observe(self._on_dark, "dark")
        super().__init__([*shown, self.status])

    def _on_dark(self, _change: Any) -> None:
        with self.status.guard():
            self.figure.layout = phases_figure(phases(self.session), dark=self.link.dark).layout
