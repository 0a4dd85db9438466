"""Plotly figures as widgets, all with the same buttons."""

from __future__ import annotations

from functools import cache
from typing import Any

import anywidget
import ipywidgets
import plotly.graph_objects as go
import traitlets

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
    """Invisible; keeps the plot beside it as wide as its place."""

    _esm = module("fit.js")


class PlotlySource(anywidget.AnyWidget):
    """Plotly's program for the browser, sent once for all plots."""

    _esm = "export default {};"
    program = traitlets.Unicode(str(go.FigureWidget._esm)).tag(sync=True)  # noqa: SLF001


@cache
def _source() -> PlotlySource:
    return PlotlySource()


class PlotWidget(go.FigureWidget):
    """Plotly's own widget, started in a way that a busy machine does not break.

    Notes
    -----
    A change sent before the browser listens is lost there, and a browser that opens the page
    late or again is told the figure as it was made. So it says when it has drawn, and is then
    told what the figure is by now.
    """

    _esm = module("plot.js")
    _plotly = traitlets.Instance(PlotlySource).tag(sync=True, **ipywidgets.widget_serialization)

    @traitlets.default("_plotly")
    def _shared(self) -> PlotlySource:
        return _source()

    def __init__(self, figure: go.Figure) -> None:
        super().__init__(figure)
        self.on_msg(self.on_drawn)

    def on_drawn(self, *_message: Any) -> None:
        """The browser has drawn the figure as it was made."""
        if self._last_layout_edit_id == self._last_trace_edit_id == 0:
            return
        made, now = self._widget_data, self._data
        names = {name for trace in (*made, *now) for name in trace} - {"type", "uid"}
        traces = {name: [trace.get(name) for trace in now] for name in names}
        layout = {name: self._layout.get(name) for name in {*self._widget_layout, *self._layout}}
        self._send_update_msg(traces, layout, list(range(len(now))))


def repainted(widget: go.FigureWidget, made: go.Figure) -> None:
    """Show another figure of as many traces in a living widget, which keeps who listens to it."""
    with widget.batch_update():
        widget.update_layout(made.layout)
        for old, new in zip(widget.data, made.data, strict=True):
            old.update(new.to_plotly_json())


def figure_widget(figure: go.Figure) -> go.FigureWidget:
    """A living widget of a figure that is complete."""
    widget = PlotWidget(figure)
    widget._config = dict(_CONFIG)  # noqa: SLF001 - the only way plotly offers
    return widget
