"""Points of a schedule on the host's side, and what comes before each of them."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

Ints = npt.NDArray[np.int64]
LAUNCH, WAIT, STEP_START, STEP_END = range(4)

WAITS = re.compile(
    r"^(?:cuda|hip|cu)(?:Stream|Device|Event|Ctx)Synchronize|^(?:cuda|hip)Memcpy(?!.*Async)"
    r"|^(?:cuda|hip)Free$"
)
DEVICE_WIDE = re.compile(r"(?:Device|Ctx)Synchronize")
FREE = re.compile(r"Free")
COPIES = re.compile(r"^(?:cuda|hip|cu)Memcpy")


@dataclass(frozen=True)
class HostPoints:
    """Moments of the host that matter to the device or the steps, in order of time.

    ``in_ns`` to ``out_ns`` is the call itself where it waits; a launch that does not is one
    moment. ``before`` is the point whose ``out_ns`` the piece of host time up to ``in_ns``
    follows (-1: the window's start), ``also`` another one that must have passed.
    """

    kind: Ints
    thread: Ints
    event: Ints
    in_ns: Ints
    out_ns: Ints
    before: Ints
    also: Ints
    main: int


def with_order(
    kind: Ints, thread: Ints, event: Ints, in_ns: Ints, out_ns: Ints, main: int, marks: Ints
) -> HostPoints:
    """Points with the point each follows.

    Parameters
    ----------
    kind, thread, event, in_ns, out_ns : ndarray of int64
        One value a point, sorted by ``in_ns``.
    main : int
        The thread that runs the loop.
    marks : ndarray of int64
        Sorted starts and ends of recorded calls of that thread: between two of them it runs
        one call and nothing else, so another thread's work there is work it waits for.
    """
    before = np.full(len(kind), -1, dtype=np.int64)
    also = np.full(len(kind), -1, dtype=np.int64)
    of_main = np.flatnonzero(thread == main)
    before[of_main[1:]] = of_main[:-1]
    for other in np.unique(thread[thread != main]):
        mine = np.flatnonzero(thread == other)
        run = np.searchsorted(marks, in_ns[mine])
        first = np.concatenate(([True], run[1:] != run[:-1]))
        own = np.concatenate(([-1], mine[:-1]))
        caller = _last_before(of_main, out_ns, mine, in_ns)
        before[mine] = np.where(first, caller, own)
        also[mine] = np.where(first, own, -1)
        _return_to_main(before, also, of_main, mine, run, in_ns, out_ns)
    return HostPoints(kind, thread, event, in_ns, out_ns, before, also, main)


def _last_before(candidates: Ints, out_ns: Ints, points: Ints, in_ns: Ints) -> Ints:
    """The last candidate that had passed when each point began, or -1."""
    if len(candidates) == 0:
        return np.full(len(points), -1, dtype=np.int64)
    reach = np.maximum.accumulate(out_ns[candidates])
    place = np.searchsorted(reach, in_ns[points], side="right") - 1
    found = np.where(place >= 0, candidates[np.maximum(place, 0)], -1)
    tied = found >= points
    place = np.where(tied, place - 1, place)
    found = np.where(place >= 0, candidates[np.maximum(place, 0)], -1)
    return np.where(found >= points, -1, found)


def _return_to_main(
    before: Ints, also: Ints, of_main: Ints, mine: Ints, run: Ints, in_ns: Ints, out_ns: Ints
) -> None:
    """A point of the loop's thread follows the other thread's work done while it was blocked."""
    last = _last_before(mine, out_ns, of_main, in_ns)
    length = pd.Series(run).groupby(run).transform("size").to_numpy()
    place = np.searchsorted(mine, np.maximum(last, 0))
    long_enough = (last >= 0) & (length[np.minimum(place, len(mine) - 1)] >= 2)
    later = long_enough & (last > before[of_main])
    also[of_main[later]] = before[of_main[later]]
    before[of_main[later]] = last[later]
