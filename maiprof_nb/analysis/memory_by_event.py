"""A memory log by event: every change of memory one unit wide, however fast it came."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from maiprof_nb.analysis.active_memory import MemoryLog
from maiprof_nb.timebase import NS_PER_US, TimeWindow


def by_event(log: MemoryLog) -> MemoryLog:
    """The same log with the number of the change in place of the time.

    Returns
    -------
    MemoryLog
        State ``k`` holds from ``k`` to ``k + 1``; its ``span`` is the number of states, its
        axis is ``order``. Rows of ``allocations`` keep their order and ids.

    Notes
    -----
    Bursts of allocations get room and pauses get none, so that widths say nothing about time.
    """
    lives, count = log.allocations, len(log.ts_ns)
    ended = lives["end_ns"].notna().to_numpy(bool)
    ends = pd.array(lives["end_state"].to_numpy(np.int64), dtype="Int64")
    ends[~ended] = pd.NA
    return replace(
        log,
        device=replace(log.device, axis="order"),
        span=TimeWindow(0, count),
        ts_ns=np.arange(count, dtype=np.int64),
        allocations=lives.assign(ts_ns=lives["first_state"].to_numpy(np.int64), end_ns=ends),
    )


def times_of(log: MemoryLog, events: TimeWindow) -> TimeWindow:
    """When a range of events of `by_event` happened, in the log's own times; 1 us at least."""
    last = len(log.ts_ns) - 1
    first, end = max(events.start_ns, 0), min(events.end_ns, last)
    start_ns = int(log.ts_ns[min(first, last)])
    return TimeWindow(start_ns, max(start_ns + NS_PER_US, int(log.ts_ns[max(end, 0)])))


def events_of(log: MemoryLog, window: TimeWindow) -> TimeWindow:
    """The events of `by_event` whose states are in force in a time of the log."""
    first = int(log.states_at(window.start_ns))
    end = int(np.searchsorted(log.ts_ns, window.end_ns, side="right"))
    return TimeWindow(first, max(end, first + 1))
