"""Curves over time in one plotly widget, re-binned in Python at every zoom."""

from __future__ import annotations

from typing import Any

import ipywidgets
import plotly.graph_objects as go

from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow
from maiprof_widgets.figures.panels import (
    Mark,
    Panel,
    TimeScale,
    axis_range,
    mark_lines,
    panels_figure,
    points,
    time_scale,
)
from maiprof_widgets.figures.theme import theme
from maiprof_widgets.link import LinkState
from maiprof_widgets.views._plot import FitView, figure_widget
from maiprof_widgets.views.delayed import Delayed
from maiprof_widgets.views.status import StatusLine

BINS = 1200
_QUIET_S = 0.15  # plotly draws all of itself anew, which would hold up whoever scrubs


class CurvesView(ipywidgets.VBox):
    """Base of the views that draw panels of curves. Reads and sets ``link.window``.

    ``link.moment_ns`` is marked in all of them.

    Parameters
    ----------
    session : Session
        What to show.
    link : LinkState
        Shared with the other views.

    Notes
    -----
    The figure is complete before it becomes a widget, and is only updated afterwards:
    a change made between the two would be drawn anew.
    """

    def __init__(self, session: Session, link: LinkState) -> None:
        self.session, self.link = session, link
        self.scale = self.axis()
        self.status = StatusLine()
        self._applying = False
        panels: list[Panel] = []
        with self.status.guard():
            panels = self.panels(self.shown)
        self.figure = self._widget(panels)
        shown = [FitView(), self.figure, *self.beneath(), self.status]
        super().__init__(shown if panels else [self.status])
        self.add_class("maiprof-curves")
        if panels:
            link.observe(lambda _change: self._repaint(), "dark")
        link.observe(self._on_window, "window")
        link.observe(self._on_selection, "selection")
        later = Delayed(self._mark, _QUIET_S)
        link.observe(lambda _change: later.request(), "moment_ns")

    def panels(self, window: TimeWindow) -> list[Panel]:
        """The panels for a window; the same number of curves for every window."""
        raise NotImplementedError

    def beneath(self) -> list[ipywidgets.Widget]:
        """What stands beneath the panels."""
        return []

    @property
    def moment(self) -> int | None:
        """The moment to mark, on the view's axis."""
        return self.link.moment_ns

    def marks(self) -> list[Mark]:
        """What is marked across the panels: the moment pointed at."""
        at = self.moment
        return [] if at is None else [Mark(at, theme(dark=self.link.dark).text)]

    @property
    def shown(self) -> TimeWindow:
        """The window to show."""
        return self.link.window or self.whole

    @property
    def whole(self) -> TimeWindow:
        """What is shown when no window is chosen."""
        return self.session.window

    @property
    def extent(self) -> TimeWindow:
        """What a window is kept within."""
        return self.session.span

    def axis(self) -> TimeScale:
        """The unit of the time axis."""
        return time_scale(self.extent.dur_ns)

    def look(self, window: TimeWindow | None) -> None:
        """Show another window; None = the whole."""
        self.link.window = window

    def _widget(self, panels: list[Panel]) -> go.FigureWidget:
        widget = figure_widget(self._figure(panels) if panels else go.Figure())
        widget.layout.on_change(self._on_range, "xaxis.range", append=True)
        widget.layout.on_change(self._on_autorange, "xaxis.autorange", append=True)
        return widget

    def _figure(self, panels: list[Panel]) -> go.Figure:
        return panels_figure(
            panels, window=self.shown, scale=self.scale, dark=self.link.dark, marks=self.marks()
        )

    def _mark(self) -> None:
        if not self.figure.data:
            return
        with self.status.guard():
            self.figure.layout.shapes = mark_lines(self.marks(), self.shown, self.scale)

    def _on_range(self, _layout: Any, new_range: tuple[float, float] | None) -> None:
        """The user zoomed (or the browser echoes what Python set)."""
        if self._applying or not new_range:
            return
        with self.status.guard():
            window = self.scale.window(*(float(edge) for edge in new_range))
            window = window.intersect(self.extent) if window.dur_ns else window
            if _same(window, self.whole, self.scale.ns):
                self.look(None)
            elif not _same(window, self.shown, self.scale.ns):
                self.look(window)

    def _on_autorange(self, _layout: Any, autorange: object) -> None:
        """A double click: back to the whole session."""
        if not self._applying and autorange:
            self.look(None)
            self.redraw()

    def _on_window(self, _change: Any) -> None:
        self.redraw()

    def _on_selection(self, _change: Any) -> None:
        """Views that mark what is selected redraw."""

    def _repaint(self) -> None:
        with self.status.guard():
            panels = self.panels(self.shown)
            made = self._figure(panels)
            self._applying = True
            try:
                with self.figure.batch_update():
                    # updated, not replaced: a new layout would lose who listens to its range
                    self.figure.update_layout(made.layout)
                    for old, new in zip(self.figure.data, made.data, strict=True):
                        old.update(_colours(new))
            finally:
                self._applying = False

    def redraw(self) -> None:
        """Send the detail of the current window."""
        with self.status.guard():
            window = self.shown
            curves = [curve for panel in self.panels(window) for curve in panel.curves]
            self._applying = True
            try:
                with self.figure.batch_update():
                    for trace, curve in zip(self.figure.data, curves, strict=True):
                        trace.update(points(curve, self.scale))
                    self.figure.layout.xaxis.range = axis_range(window, self.scale)
                    self.figure.layout.shapes = mark_lines(self.marks(), window, self.scale)
            finally:
                self._applying = False


def _colours(trace: Any) -> dict[str, Any]:
    if trace.type == "heatmap":
        return {"colorscale": trace.colorscale}
    return {"line": trace.line, "fillcolor": trace.fillcolor}


def _same(one: TimeWindow, other: TimeWindow, unit_ns: int) -> bool:
    """Equal to what the axis can tell."""
    slack = max(other.dur_ns // 10_000, unit_ns // 1_000_000, 1)
    return abs(one.start_ns - other.start_ns) <= slack and abs(one.end_ns - other.end_ns) <= slack
