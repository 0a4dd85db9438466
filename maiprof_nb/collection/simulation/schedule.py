"""Questions to a run's own schedule: when the device was busy, and with what."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Sequence

from maiprof_nb.collection.simulation.machine import Activity
from maiprof_nb.collection.simulation.training import Run

Interval = tuple[int, int]


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Merged intervals in order; intervals that touch become one."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def complement(merged: Sequence[Interval], start: int, end: int) -> list[Interval]:
    """What `merged` leaves free of ``[start, end)``."""
    gaps, at = [], start
    for begin, stop in merged:
        if begin > at:
            gaps.append((at, min(begin, end)))
        at = max(at, stop)
    if at < end:
        gaps.append((at, end))
    return [gap for gap in gaps if gap[1] > gap[0]]


def recorded_window(run: Run) -> Interval:
    """First recorded step's start to the last one's end, or its last activity's if later."""
    start, end = run.steps[0][1], run.steps[-1][2]
    launched = (
        activity.end_ns
        for activity in run.machine.activities
        if start <= activity.launch.start_ns < end
    )
    return start, max(end, *launched)


class Integral:
    """The running integral over time of a weight that activities on one stream carry."""

    def __init__(self, activities: Iterable[Activity], weight: Callable[[Activity], float]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._weights: list[float] = []
        self._before: list[float] = []
        total = 0.0
        for activity in activities:
            self._starts.append(activity.start_ns)
            self._ends.append(activity.end_ns)
            self._weights.append(weight(activity))
            self._before.append(total)
            total += self._weights[-1] * activity.dur_ns

    def until(self, ts_ns: int) -> float:
        """The integral from the start of time to `ts_ns`, in weight times ns."""
        place = bisect.bisect_right(self._starts, ts_ns) - 1
        if place < 0:
            return 0.0
        inside = min(ts_ns, self._ends[place]) - self._starts[place]
        return self._before[place] + self._weights[place] * inside

    def mean(self, start: int, end: int) -> float:
        """Mean weight over ``[start, end)``."""
        return (self.until(end) - self.until(start)) / (end - start)
