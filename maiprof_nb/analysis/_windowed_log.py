"""The part of a memory log that lies in a window."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from maiprof_nb.analysis._memory_log import Ints, MemoryLog
from maiprof_nb.timebase import TimeWindow


def cut(log: MemoryLog, window: TimeWindow) -> MemoryLog | None:
    """The log as if it had been switched on and read in `window`; None where they do not meet.

    What was made before counts as older than the log but keeps its stack; what is freed later
    lives at the end. Ids of allocations and stacks stay those of the whole log.
    """
    start_ns, end_ns = log.span.start_ns, log.span.end_ns
    if window.start_ns <= start_ns and end_ns <= window.end_ns:
        return log
    if window.end_ns <= start_ns or end_ns < window.start_ns:
        return None
    first = max(int(np.searchsorted(log.ts_ns, window.start_ns)) - 1, 0)
    end = len(log.ts_ns)
    if window.end_ns < end_ns:  # the last event of a log belongs to a window that ends with it
        end = max(int(np.searchsorted(log.ts_ns, window.end_ns)), first + 1)
    shown = slice(first, end)
    ts_ns = log.ts_ns[shown].copy()
    ts_ns[0] = max(ts_ns[0], window.start_ns)
    lives = log.allocations
    lives = lives[((lives["first_state"] < end) & (lives["end_state"] > first)).to_numpy(bool)]
    made, gone = (lives[side].to_numpy(np.int64) for side in ("first_state", "end_state"))
    old = lives["before_log"].to_numpy(bool) | ((made <= first) & (first > 0))
    lives = lives.assign(
        before_log=old,
        first_state=np.maximum(made - first, 0),
        end_state=np.minimum(gone, end) - first,
        end_ns=lives["end_ns"].mask(gone >= end),
    ).reset_index(drop=True)
    return replace(
        log,
        span=log.span.intersect(window),
        ts_ns=ts_ns,
        allocated_bytes=log.allocated_bytes[shown],
        requested_bytes=_part(log.requested_bytes, shown),
        reserved_bytes=_part(log.reserved_bytes, shown),
        allocations=lives,
    )


def _part(values: Ints | None, shown: slice) -> Ints | None:
    return None if values is None else values[shown]
