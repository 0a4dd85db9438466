"""What the waiting points of a schedule wait for."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._schedule_device import DeviceWork
from maiprof_nb.analysis._schedule_host import DEVICE_WIDE, FREE, WAIT, HostPoints

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_SOON_NS = 100_000  # a wait ends so soon after the work it awaited


def read_waits(
    points: HostPoints, work: DeviceWork, calls: pd.DataFrame
) -> tuple[Ints, Ints, Ints, Ints]:
    """What each waiting point costs by itself, and which work it awaits."""
    count = len(points.kind)
    own = points.out_ns - points.in_ns
    names = pd.Series(calls["name"].astype("str").to_numpy(), index=calls["event"])
    waiting = np.flatnonzero((points.kind == WAIT) | (own > 0))
    wide = names.reindex(points.event[waiting]).str.contains(DEVICE_WIDE).fillna(value=False)
    by_stream = [_last_done(points, work, waiting, stream) for stream in np.unique(work.stream)]
    candidates = np.stack(by_stream) if by_stream else np.empty((0, len(waiting)), np.int64)
    end = work.end_ns
    ends = np.where(candidates >= 0, end[np.maximum(candidates, 0)], -1)
    latest = ends.max(axis=0, initial=-1)
    begin, until = points.in_ns[waiting], points.out_ns[waiting]
    blocked = latest > begin
    explained = (latest >= 0) & (~blocked | (until - latest <= _SOON_NS))
    long = until - begin > _SOON_NS
    cheap = (until - begin)[~blocked & ~long]
    usual = int(np.median(cheap)) if len(cheap) else 3_000
    usual_wake = _usual_wake(until - latest, blocked & explained)
    # A long wait that no recorded work explains is left out, and makes the replay miss.
    free = names.reindex(points.event[waiting]).str.contains(FREE).fillna(value=False)
    short = waiting[blocked | (long & ~free.to_numpy(bool))]
    own[short] = np.minimum(own[short], usual)
    takes = np.zeros(candidates.shape, dtype=bool)
    takes[:, :] = explained & (candidates >= 0)
    takes &= wide.to_numpy(bool) | (ends == latest)
    pairs = np.argwhere(takes.T)
    awaited = candidates[pairs[:, 1], pairs[:, 0]]
    counts = np.zeros(count, dtype=np.int64)
    np.add.at(counts, waiting[pairs[:, 0]], 1)
    woken = np.zeros(count, dtype=np.int64)
    woken[waiting] = np.where(blocked, until - latest, np.minimum(usual_wake, until - latest))
    return own, np.concatenate(([0], np.cumsum(counts))), awaited, woken


def _usual_wake(after: Ints, blocked: Flags) -> int:
    return int(np.median(after[blocked])) if blocked.any() else 0


def _last_done(points: HostPoints, work: DeviceWork, waiting: Ints, stream: int) -> Ints:
    """The last work of a stream launched by and done before each waiting point, or -1."""
    mine = np.flatnonzero(work.stream == stream)
    ends = np.maximum.accumulate(work.end_ns[mine])
    done = np.searchsorted(ends, points.out_ns[waiting], side="right")
    launched = np.searchsorted(work.launch[mine], waiting, side="right")
    place = np.minimum(done, launched) - 1
    return np.where(place >= 0, mine[np.maximum(place, 0)], -1)
