"""Fragmentation over time; a click shows the allocator's segments at that moment."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from maiprof_nb.analysis.active_memory import MemoryDevice, memory_devices
from maiprof_nb.analysis.allocator_state import AllocatorHistory, allocator_history
from maiprof_nb.analysis.device_size import DeviceSize, device_size
from maiprof_nb.analysis.fragmentation import fragmentation_of
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow
from maiprof_widgets.figures.fragmentation import fragmentation_panels
from maiprof_widgets.figures.panels import Mark, Panel, TimeScale, time_scale
from maiprof_widgets.figures.theme import theme
from maiprof_widgets.link import LinkState
from maiprof_widgets.views._moments import moment_of, shares_moments
from maiprof_widgets.views._refused import refused
from maiprof_widgets.views.curves import CurvesView

_POINTS = 600
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
        size = self._size
        self._found = fragmentation_of(
            self.history,
            points=_POINTS,
            window=window,
            device_bytes=None if size is None else size.size_bytes,
        )
        return fragmentation_panels(
            self._found,
            most_bytes=self._most_bytes,
            dark=self.link.dark,
            known_size=size is not None,
        )

    @cached_property
    def _most_bytes(self) -> int:
        """Of the whole log: the axis of bytes stays at every zoom."""
        found = fragmentation_of(
            self.history,
            points=5,
            device_bytes=None if self._size is None else self._size.size_bytes,
        )
        return int(found[["reserved_bytes", "fits_after_release_bytes"]].max().max())

    @cached_property
    def _size(self) -> DeviceSize | None:
        return device_size(self.session, self.history.device)

    def marks(self) -> list[Mark]:
        """The moment pointed at, and requests that failed."""
        if self._device is None:
            return super().marks()
        alarm = theme(dark=self.link.dark).alarm
        failed = refused(self.session, self._device)
        return [*(Mark(one.ts_ns, alarm, one.brief) for one in failed), *super().marks()]

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
    def moment(self) -> int | None:
        """The moment pointed at, where this log shares its axis."""
        shared = self._device is not None and shares_moments(self.session, self._device)
        return self.link.moment_ns if shared else None

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
