"""Fragmentation over time; a click shows the allocator's segments at that moment."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from maiprof_nb.analysis.active_memory import MemoryDevice, memory_devices
from maiprof_nb.analysis.allocator_state import AllocatorHistory, allocator_history
from maiprof_nb.analysis.fragmentation import fragmentation_of
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow
from maiprof_widgets.figures.fragmentation import fragmentation_panels
from maiprof_widgets.figures.panels import Panel, TimeScale, points, time_scale
from maiprof_widgets.link import LinkState
from maiprof_widgets.views._moments import moment_of, shares_moments
from maiprof_widgets.views.curves import CurvesView
from maiprof_widgets.views.delayed import Delayed

_POINTS = 600
_QUIET_S = 0.15  # plotly draws all of itself anew, which would hold up whoever scrubs
_EVENTS = TimeScale("", 1, "event number (this log has no times)")


class FragmentationView(CurvesView):
    """Reserved, allocated, what would fit, and fragmentation over time.

    Reads ``link.window``, ``link.moment_ns`` and ``link.dark``; sets ``link.window`` by zooming
    and ``link.moment_ns`` by a click.

    Parameters
    ----------
    session : Session
        What was recorded; the first snapshot in it that has a log is shown.
    link : LinkState
        Shared with the other views.

    Notes
    -----
    A log without times is drawn over its events and keeps a window of its own.
    """

    def __init__(self, session: Session, link: LinkState) -> None:
        self._own_window: TimeWindow | None = None
        self._found = pd.DataFrame()
        self._device = _with_log(session)
        self._history = None if self._device is None else allocator_history(session, self._device)
        super().__init__(session, link)
        for trace in self.figure.data:
            trace.on_click(self._on_click)
        later = Delayed(self._mark, _QUIET_S)
        link.observe(lambda _change: later.request(), "moment_ns")

    @property
    def history(self) -> AllocatorHistory:
        """The log that is shown.

        Raises
        ------
        NotAnswerableError
            If the session holds no snapshot with a log.
        """
        if self._history is None:
            raise NotAnswerableError(
                "fragmentation over time needs a memory snapshot with a log of events",
                remedy="Record with torch.cuda.memory._record_memory_history(max_entries=...) "
                "before the steps to look at",
            )
        return self._history

    def panels(self, window: TimeWindow) -> list[Panel]:
        """Bytes, and the share of free memory that is in pieces."""
        self._found = fragmentation_of(self.history, points=_POINTS, window=window)
        return self._panels()

    def _panels(self) -> list[Panel]:
        return fragmentation_panels(
            self._found, self._moment, most_bytes=self._most_bytes, dark=self.link.dark
        )

    @cached_property
    def _most_bytes(self) -> int:
        """Of the whole log: the axis of bytes stays at every zoom."""
        return int(fragmentation_of(self.history, points=5)["reserved_bytes"].max())

    @property
    def shown(self) -> TimeWindow:
        """The window to show."""
        return super().shown if self._timed else self._own_window or self.whole

    @property
    def whole(self) -> TimeWindow:
        """What is shown when no window is chosen."""
        return super().whole if self._timed else self._log_span

    @property
    def extent(self) -> TimeWindow:
        """What a window is kept within."""
        return super().extent if self._timed else self._log_span

    def axis(self) -> TimeScale:
        """The unit of the time axis, or events where no times were recorded."""
        if self._timed:
            return super().axis()
        unit = time_scale(self.extent.dur_ns)
        own = TimeScale(unit.unit, unit.ns, "time since the log's start, by a clock of its own")
        return _EVENTS if self.history.device.axis == "order" else own

    def look(self, window: TimeWindow | None) -> None:
        """Show another window; None = the whole."""
        if self._timed:
            super().look(window)
        else:
            self._own_window = window
            self.redraw()

    @property
    def _timed(self) -> bool:
        """On the session's axis (or nothing to show at all)."""
        return self._device is None or self._device.axis == "time"

    @property
    def _log_span(self) -> TimeWindow:
        ts_ns = self.history.ts_ns
        return TimeWindow(int(ts_ns[0]), int(ts_ns[-1]))

    @property
    def _moment(self) -> int | None:
        """What is marked; the end of the log is no mark."""
        shared = self._device is not None and shares_moments(self.session, self._device)
        return self.link.moment_ns if shared else None

    def _mark(self) -> None:
        if self._found.empty:
            return
        with self.status.guard():
            curves = [curve for panel in self._panels() for curve in panel.curves]
            with self.figure.batch_update():
                for trace, curve in zip(self.figure.data, curves, strict=True):
                    if curve.style == "segments":
                        trace.update(points(curve, self.scale))

    def _on_click(self, _trace: Any, clicked: Any, _state: Any) -> None:
        if not clicked.xs or self._found.empty:
            return
        with self.status.guard():
            at = float(clicked.xs[0]) * self.scale.ns
            row = int(np.abs(self._found["ts_ns"].to_numpy(np.float64) - at).argmin())
            if shares_moments(self.session, self.history.device):
                self.link.moment_ns = moment_of(self.history, int(self._found["state"].iloc[row]))


def _with_log(session: Session) -> MemoryDevice | None:
    known = [d for d in memory_devices(session) if d.kind == "snapshot" and d.axis != "state"]
    return known[0] if known else None
