"""The training loop by phase."""

from __future__ import annotations

from typing import Any

import ipywidgets

from maiprof_nb.analysis.phases import phases
from maiprof_nb.session import Session
from maiprof_widgets.figures.phases import phases_figure
from maiprof_widgets.link import LinkState
from maiprof_widgets.views._plot import FitView, figure_widget
from maiprof_widgets.views.status import StatusLine


class PhasesView(ipywidgets.VBox):
    """Reads ``link.dark``."""

    def __init__(self, session: Session, link: LinkState) -> None:
        self.session, self.link = session, link
        self.status = StatusLine()
        shown: list[ipywidgets.Widget] = []
        with self.status.guard():
            self.figure = figure_widget(phases_figure(phases(session), dark=link.dark))
            self._dark, self._drawn = link.dark, False
            fit = FitView()
            fit.on_msg(self._on_drawn)
            shown = [fit, self.figure]
            link.observe(self._on_dark, "dark")
        super().__init__([*shown, self.status])
        self.add_class("maiprof-curves")

    def _on_drawn(self, *_message: Any) -> None:
        self._drawn = True
        self._on_dark(None)

    def _on_dark(self, _change: Any) -> None:
        if not self._drawn or self._dark == self.link.dark:
            return
        self._dark = self.link.dark
        with self.status.guard():
            made = phases_figure(phases(self.session), dark=self.link.dark)
            with self.figure.batch_update():
                self.figure.update_layout(made.layout)
                for old, new in zip(self.figure.data, made.data, strict=True):
                    old.update(marker=new.marker)
