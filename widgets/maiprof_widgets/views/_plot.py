"""Plotly figures as widgets, all with the same buttons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anywidget
import plotly.graph_objects as go
import traitlets

from maiprof_widgets.link import LinkState
from maiprof_widgets.views._static import module

# The button of showSendToCloud would upload the picture's data to another host.
_CONFIG: dict[str, Any] = {
    "displaylogo": False,
    "showSendToCloud": False,
    "showTips": False,
    "responsive": True,
    "modeBarButtonsToRemove": ["sendChartToCloud", "lasso2d", "select2d", "autoScale2d"],
}


class FitView(anywidget.AnyWidget):
    """Invisible; keeps the plot beside it as wide as its place, and says when it is drawn."""

    _esm = module("fit.js")


class GroundView(FitView):
    """A fit that has its plot drawn again whenever the page turns dark or light.

    Parameters
    ----------
    link : LinkState
        Says whether the ground is dark.
    repaint : callable
        Draws again in the colours of ``link.dark``. Not called before the browser has drawn
        the plot for the first time: what is sent to it before that is lost.
    """

    def __init__(self, link: LinkState, repaint: Callable[[], None]) -> None:
        super().__init__()
        self._link, self._repaint = link, repaint
        self._dark, self._drawn = link.dark, False
        self.on_msg(self.on_drawn)
        link.observe(lambda _change: self._follow(), "dark")

    def on_drawn(self, *_message: Any) -> None:
        """The browser has drawn the plot."""
        self._drawn = True
        self._follow()

    def _follow(self) -> None:
        if self._drawn and self._dark != self._link.dark:
            self._dark = self._link.dark
            self._repaint()


def repainted(widget: go.FigureWidget, made: go.Figure) -> None:
    """Show another figure of as many traces in a living widget, which keeps who listens to it."""
    with widget.batch_update():
        widget.update_layout(made.layout)
        for old, new in zip(widget.data, made.data, strict=True):
            old.update(new.to_plotly_json())


class PlotWidget(go.FigureWidget):
    """Plotly's own widget, started in a way that a busy machine does not break."""

    _esm = module("plot.js")
    _plotly = traitlets.Unicode(str(go.FigureWidget._esm)).tag(sync=True)  # noqa: SLF001


def figure_widget(figure: go.Figure) -> go.FigureWidget:
    """A living widget of a figure that is complete."""
    widget = PlotWidget(figure)
    widget._config = dict(_CONFIG)  # noqa: SLF001 - the only way plotly offers
    return widget
