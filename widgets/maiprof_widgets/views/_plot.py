"""Plotly figures as widgets, all with the same buttons."""

from __future__ import annotations

from typing import Any

import anywidget
import plotly.graph_objects as go

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


def figure_widget(figure: go.Figure) -> go.FigureWidget:
    """A living widget of a figure that is complete."""
    widget = go.FigureWidget(figure)
    widget._config = dict(_CONFIG)  # noqa: SLF001 - the only way plotly offers
    return widget
