"""Edges of a schedule on the device's side: launch to work, stream order, other streams."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

SMALL_NS = 20_000  # jitter of a launch or a queue that is kept as it was recorded
HANDOVER_NS = 50_000  # work that starts so soon after another stream's end has waited for it
_ROUNDED_NS = 3_000  # starts before that end by so little: time stamps in whole microseconds


@dataclass(frozen=True)
class DeviceWork:
    """Work in the order it was launched; positions of -1 mean "none".

    A piece starts when all of these have passed: ``latency_ns`` after its launch (point
    ``launch``; -1 is the window's start), ``gap_ns`` after the work before it on its stream,
    ``handover_ns`` after work of another stream it waits for; it then takes ``dur_ns``.
    """

    row: Ints
    launch: Ints
    start_ns: Ints
    dur_ns: Ints
    stream: Ints
    latency_ns: Ints
    before: Ints
    gap_ns: Ints
    awaits: Ints
    handover_ns: Ints
    unexplained_ns: Ints

    @property
    def end_ns(self) -> Ints:
        """Recorded ends."""
        return self.start_ns + self.dur_ns


def device_work(
    row: Ints,
    launch: Ints,
    called_ns: Ints,
    call_ns: Ints,
    start_ns: Ints,
    dur_ns: Ints,
    stream: Ints,
) -> DeviceWork:
    """Tie each piece of work to what it may have waited for.

    Parameters
    ----------
    row, launch, called_ns, call_ns, start_ns, dur_ns, stream : ndarray of int64
        One value a piece of work: its row, the host point that launched it, that point's
        time and the call's duration, its own start and duration, a number of its stream.
    """
    order = np.lexsort((start_ns, launch))
    row, launch, called, call, start, dur, stream = (
        one[order] for one in (row, launch, called_ns, call_ns, start_ns, dur_ns, stream)
    )
    end = start + dur
    before = _before(stream, start)
    queued_ns = np.where(before >= 0, end[before], np.iinfo(np.int64).min // 2)
    since_call, since_before = start - called, start - queued_ns
    free = (before < 0) | (queued_ns <= called)
    usual_latency = _usual(since_call[free & (launch >= 0)], 5_000)
    queued = (before >= 0) & ~free
    usual_gap = _usual(since_before[queued & (since_before <= SMALL_NS)], 1_000)
    by_launch = called + usual_latency >= queued_ns + usual_gap
    latency = np.where(by_launch, since_call, np.minimum(since_call, usual_latency))
    gap = np.where(by_launch, np.minimum(since_before, usual_gap), since_before)
    gap[before < 0] = 0
    limit_latency = call + max(SMALL_NS, 3 * usual_latency)
    late = np.where(by_launch, latency > limit_latency, gap > SMALL_NS) & (launch >= 0)
    shared = np.zeros(len(row), dtype=bool)
    shared[1:] = (launch[1:] == launch[:-1]) & (launch[1:] >= 0)
    late &= ~shared  # later kernels of one graph launch keep their recorded place
    awaits, handover = _other_stream(np.flatnonzero(late), stream, start, end)
    expected = np.maximum(
        called + np.minimum(latency, usual_latency), queued_ns + np.minimum(gap, usual_gap)
    )
    unexplained = np.where(late & (awaits < 0), start - expected, 0)
    latency[late] = np.minimum(latency[late], usual_latency)
    gap[late] = np.minimum(gap[late], usual_gap)
    return DeviceWork(
        row, launch, start, dur, stream, latency, before, gap, awaits, handover, unexplained
    )  # fmt: skip


def _before(stream: Ints, start: Ints) -> Ints:
    """The work before on the same stream, if it was launched before, too."""
    by_stream = np.lexsort((start, stream))
    before = np.full(len(stream), -1, dtype=np.int64)
    same = stream[by_stream][1:] == stream[by_stream][:-1]
    before[by_stream[1:][same]] = by_stream[:-1][same]
    before[before >= np.arange(len(stream))] = -1
    return before


def _other_stream(late: Ints, stream: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """For late work, the work of another stream whose end it started right after."""
    awaits = np.full(len(stream), -1, dtype=np.int64)
    handover = np.zeros(len(stream), dtype=np.int64)
    if len(late) == 0:
        return awaits, handover
    by_end = np.argsort(end, kind="stable")
    ends = end[by_end]
    place = np.searchsorted(ends, start[late] + _ROUNDED_NS, side="right") - 1
    for _ in range(8):  # the last few ends before; further back it is too long ago
        ok = place >= 0
        other = by_end[np.maximum(place, 0)]
        near = ok & (start[late] - end[other] <= HANDOVER_NS)
        take = near & (stream[other] != stream[late]) & (other < late) & (awaits[late] < 0)
        awaits[late[take]] = other[take]
        handover[late[take]] = (start[late] - end[other])[take]
        place = place - 1
    return awaits, handover


def _usual(values: Ints, otherwise: int) -> int:
    """The lower quartile: most of what lies above it waited for something else, too."""
    return int(np.percentile(values, 25)) if len(values) else otherwise
