"""Who held the memory at the peak, or at a moment pointed at, and what became of it."""

from __future__ import annotations

from typing import Any

import ipywidgets
import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis.memory_drain import memory_drain
from maiprof_nb.analysis.memory_peak import GROUPS, KEPT, MemoryPeak, memory_peak
from maiprof_nb.session import Session
from maiprof_widgets.figures.memory_drain import memory_drain_figure
from maiprof_widgets.link import LinkState, Selection
from maiprof_widgets.views import _peak_words as words
from maiprof_widgets.views._plot import FitView, figure_widget, repainted
from maiprof_widgets.views.delayed import Delayed
from maiprof_widgets.views.memory_device import MemoryDeviceChoice
from maiprof_widgets.views.memory_flame import MemoryFlameView
from maiprof_widgets.views.status import StatusLine
from maiprof_widgets.views.table import HeaderSort, column_sides, paged_table

MAX_ROWS = 500
_QUIET_S = 0.25
_NO_DRAIN = pd.DataFrame({"after_ns": [], "category": [], "size_bytes": []})
_HINT = (
    "A click on a row or box marks its largest stack in the memory timeline. Sizes are blocks as "
    "the allocator rounds them; a category is read from stack and lifetime, no source states it."
)


class MemoryPeakView(ipywidgets.VBox):
    """Headline, table, icicle and drain of what was live at one moment.

    Follows ``link.window`` (the peak within it), ``link.moment_ns`` (where that is asked for),
    ``link.ranks`` and ``link.dark``; sets ``link.selection`` (tables ``stacks`` and
    ``allocations``) by a click, and ``link.moment_ns`` by the button.

    Parameters
    ----------
    session : Session
        What was recorded.
    link : LinkState
        Shared with the other views.

    Attributes
    ----------
    device : MemoryDeviceChoice
        Whose memory.
    when : ToggleButtons
        ``peak`` of the time shown, or the ``moment`` pointed at.
    by : ToggleButtons
        What makes a row: one of `maiprof_nb.analysis.memory_peak.GROUPS`.
    peak : MemoryPeak or None
        What is shown; None where that cannot be said.
    rows : DataFrame
        ``peak.by(...)`` of the table's rows.
    """

    def __init__(self, session: Session, link: LinkState) -> None:
        self.session, self.link = session, link
        self.status = StatusLine()
        self.peak: MemoryPeak | None = None
        self.rows = pd.DataFrame()
        self._updating = False
        self.device = MemoryDeviceChoice(session, link)
        self.when = _toggle([("Peak of the time shown", "peak"), ("Moment pointed at", "moment")])
        self.by = _toggle([(words.LABELS[group], group) for group in GROUPS])
        self._point = ipywidgets.Button(
            description="Point all views here",
            tooltip="The allocator's segments and whatever shows a moment follow",
            layout={"width": "auto"},
        )
        self.headline, self._caption = ipywidgets.HTML(), ipywidgets.HTML()
        self.flame = MemoryFlameView(link)
        self.table = paged_table(pd.DataFrame({"": []}), select="single", selected_rows=[])
        with self.status.guard():
            self.peak = self._asked()
        self.figure = figure_widget(self._drained())
        choices = _row(_TITLE, self.device, self.when, self._point)
        by = _row("Held by", self.by)
        self._drain = ipywidgets.VBox(
            [ipywidgets.HTML(_DRAIN), FitView(), self.figure], layout={"overflow": "visible"}
        )
        self._parts = ipywidgets.VBox(
            [by, self.table, HeaderSort(), self._caption, self.flame, self._drain],
            layout={"overflow": "visible"},
        )
        super().__init__([choices, self.headline, self._parts, self.status])
        self.add_class("maiprof-peak")
        self._show(redraw=False)  # complete as it is
        self._observe()

    def _observe(self) -> None:
        later = Delayed(self.refresh, _QUIET_S)
        self.device.observe(lambda _change: self.refresh(), "value")
        self.when.observe(lambda _change: self.refresh(), "value")
        self.by.observe(lambda _change: self._show_table(), "value")
        self._point.on_click(self._on_point)
        self.table.observe(self._on_row, "selected_rows")
        self.link.observe(lambda _change: later.request(), ("window", "moment_ns"))
        self.link.observe(self._on_selection, "selection")
        self.link.observe(lambda _change: self._redraw(), "dark")

    def refresh(self) -> None:
        """Look again at what is asked for now."""
        self.peak = None
        with self.status.guard():
            self.peak = self._asked()
        self._show()

    def _asked(self) -> MemoryPeak:
        device = self.device.device
        timed = device is not None and device.axis == "time"
        if self._pointed and timed:
            return memory_peak(self.session, device, at_ns=self.link.moment_ns)
        return memory_peak(self.session, device, window=self.link.window if timed else None)

    @property
    def _pointed(self) -> bool:
        return self.when.value == "moment" and self.link.moment_ns is not None

    def _show(self, *, redraw: bool = True) -> None:
        peak = self.peak
        self.headline.layout.display = self._parts.layout.display = None if peak else "none"
        if peak is None:
            return
        axis = peak.log.device.axis
        self.when.layout.display = self._point.layout.display = None if axis == "time" else "none"
        drains = axis != "state" and bool((peak.live["fate"] != KEPT).any())
        self._drain.layout.display = None if drains else "none"
        with self.status.guard():
            self._offer_groups(peak)
            self.headline.value = words.headline(self.session, peak, pointed=self._pointed)
            self.flame.show(peak, f"Bytes by call path, {self._moment(peak)}")
        if redraw:
            self._redraw()
        self._show_table()
        if self.when.value == "moment" and not self._pointed and not self.status.value:
            self.status.show(_POINT, missing=True)

    def _offer_groups(self, peak: MemoryPeak) -> None:
        """What tells nothing here is no choice."""
        options = [(words.LABELS[one], one) for one in GROUPS if words.tells(peak, one)]
        if list(self.by.options) != options:
            held = self.by.value
            self._updating = True
            try:
                self.by.options = options  # chooses none
                self.by.value = held if held in dict(options).values() else options[0][1]
            finally:
                self._updating = False

    def _moment(self, peak: MemoryPeak) -> str:
        what = "live" if self._pointed or peak.log.device.axis == "state" else "at the peak"
        return f"{units.size(peak.peak_bytes)} {what}"

    def _show_table(self) -> None:
        if self.peak is None or self._updating:
            return
        with self.status.guard():
            self.rows, shown = words.table(self.peak, self.by.value, MAX_ROWS)
            self._updating = True
            try:
                self.table.update(
                    shown,
                    selected_rows=[],
                    order=[],
                    columnDefs=column_sides(1, shown.shape[1]),
                )
            finally:
                self._updating = False
            self._caption.value = f'<div class="maiprof-sub">{_HINT}</div>'
            self._mark_row()

    def _selection_of(self, row: int) -> Selection | None:
        """The largest stack of a row; of what has none, its largest allocation."""
        if self.peak is None:
            return None
        key = self.rows[self.by.value].iloc[row]
        mine = words.about(self.peak, self.by.value, key)
        recording = self.peak.log.device.recording
        sums = mine.groupby("stack")["size_bytes"].sum()
        if len(sums):
            return Selection("stacks", row=int(sums.idxmax()), recording=recording)
        allocation = int(mine["allocation"].iloc[0])  # the largest
        return Selection("allocations", row=allocation, recording=recording)

    def _on_row(self, change: Any) -> None:
        if self._updating:
            return
        with self.status.guard():
            rows = change["new"]
            self.link.selection = self._selection_of(int(rows[0])) if rows else None

    def _on_selection(self, _change: Any) -> None:
        with self.status.guard():
            self._mark_row()

    def _mark_row(self) -> None:
        """The row chosen here stays marked for as long as that is what is chosen."""
        held = list(self.table.selected_rows)
        keep = [row for row in held if self._selection_of(int(row)) == self.link.selection]
        if keep != held:
            self._updating = True
            try:
                self.table.selected_rows = keep
            finally:
                self._updating = False

    def _on_point(self, _button: Any) -> None:
        if self.peak is not None and self.peak.log.device.axis == "time":
            self.link.moment_ns = self.peak.ts_ns

    def _drained(self) -> Any:
        drain = _NO_DRAIN if self.peak is None else memory_drain(self.peak)
        axis = "time" if self.peak is None else self.peak.log.device.axis
        return memory_drain_figure(drain, axis=axis, dark=self.link.dark)

    def _redraw(self) -> None:
        with self.status.guard():
            repainted(self.figure, self._drained())


_DRAIN = (
    "<b>How it drained</b>: what was live then and still is, by category. What reaches the right "
    "edge is never freed in the log."
)
_TITLE = "<b>What was live</b>"
_POINT = "No moment is pointed at yet: this is the peak. Point at one in a view of time."


def _row(title: str, *widgets: ipywidgets.Widget) -> ipywidgets.HBox:
    """Widgets side by side behind some words."""
    layout = {"flex_flow": "row wrap", "align_items": "center", "grid_gap": "4px 10px"}
    return ipywidgets.HBox([ipywidgets.HTML(title), *widgets], layout=layout)


def _toggle(options: list[tuple[str, str]]) -> ipywidgets.ToggleButtons:
    return ipywidgets.ToggleButtons(options=options, style={"button_width": "auto"})
