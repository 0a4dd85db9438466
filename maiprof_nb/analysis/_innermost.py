"""Which call each moment of a thread is in, innermost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maiprof_nb.analysis._host_calls import host_calls
from maiprof_nb.analysis._remember import remembered
from maiprof_nb.session import Session

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Stretches:
    """Consecutive pieces of each thread's time, by thread and then by time.

    Attributes
    ----------
    lane, start_ns, end_ns, call : ndarray of int64
        The thread's number, where the piece lies, and the row of the innermost call.
    """

    lane: Ints
    start_ns: Ints
    end_ns: Ints
    call: Ints

    def of(self, lane: int) -> Stretches:
        """The pieces of one thread."""
        first, last = np.searchsorted(self.lane, (lane, lane + 1))
        return Stretches(
            self.lane[first:last],
            self.start_ns[first:last],
            self.end_ns[first:last],
            self.call[first:last],
        )

    def within(self, start_ns: Ints, end_ns: Ints) -> tuple[Ints, Ints, Ints]:
        """The pieces of one thread that meet each interval.

        Returns
        -------
        interval, call, ns : ndarray of int64
            Position of the interval, row of the call, and how long the two coincide.
        """
        first = np.searchsorted(self.end_ns, start_ns, side="right")
        last = np.searchsorted(self.start_ns, end_ns, side="left")
        counts = np.maximum(last - first, 0)
        interval = np.repeat(np.arange(len(start_ns)), counts)
        offset = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        piece = np.repeat(first, counts) + offset
        begin = np.maximum(self.start_ns[piece], start_ns[interval])
        return interval, self.call[piece], np.minimum(self.end_ns[piece], end_ns[interval]) - begin


@remembered
def innermost(session: Session) -> Stretches:
    """The stretches of all threads of `host_calls`."""
    calls = host_calls(session)
    start = calls["ts_ns"].to_numpy(np.int64)
    return stretches(
        calls["lane"].to_numpy(np.int64),
        start,
        start + calls["dur_ns"].to_numpy(np.int64),
        calls["parent"].to_numpy(np.int64),
    )


def stretches(lane: Ints, start: Ints, end: Ints, parent: Ints) -> Stretches:
    """Stretches of calls whose parents are known."""
    real = np.flatnonzero(end > start)  # a call without length is never innermost
    count = len(real)
    lane, start, end = lane[real], start[real], end[real]
    times = np.concatenate((start, end))
    lanes = np.concatenate((lane, lane))
    # After its start a call is innermost; after its end its caller is, or nothing (-1).
    inner = np.concatenate((real, parent[real]))
    length = np.concatenate((end - start, end - start))
    is_end = np.concatenate((np.zeros(count, dtype=bool), np.ones(count, dtype=bool)))
    # At one moment: ends first, inner ones before outer ones; then starts, outer ones first.
    # Of calls as long as one another the first is the outer one.
    place = np.concatenate((np.arange(count), -np.arange(count)))
    order = np.lexsort((place, np.where(is_end, length, -length), ~is_end, times, lanes))
    times, inner, lanes = times[order], inner[order], lanes[order]
    keep = (times[1:] > times[:-1]) & (inner[:-1] >= 0) & (lanes[1:] == lanes[:-1])
    return Stretches(lanes[:-1][keep], times[:-1][keep], times[1:][keep], inner[:-1][keep])
