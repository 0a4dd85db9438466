"""The training thread as a sampler of stacks saw it, for time the trace says nothing about."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._host_calls import sampled_recordings
from maiprof_nb.analysis._innermost import Stretches
from maiprof_nb.analysis._intervals import Union, complement
from maiprof_nb.session import Session

Ints = npt.NDArray[np.int64]


def sampled_lane(session: Session, calls: pd.DataFrame) -> int | None:
    """The one sampled thread that may be the training thread; None if that is not clear.

    Samplers number threads as they like, so it is not found by the trace's number: it is the
    only sampled thread, or the only one called main (by its name, or as the process's first).
    """
    traced = {n for n, one in enumerate(session.recordings) if one.kind == "trace"}
    if len(traced) != 1:
        return None
    sampled = calls[calls["recording"].isin(sampled_recordings(session))]
    threads = sampled[["pid", "tid", "lane"]].drop_duplicates("lane").astype({"tid": "str"})
    main = threads["tid"].str.contains("MainThread") | (
        threads["tid"] == threads["pid"].astype("str")
    )
    for one in (threads, threads[main]):
        if len(one) == 1:
            return int(one["lane"].iloc[0])
    return None


def open_time(thread: Stretches, start_ns: Ints, end_ns: Ints) -> tuple[Ints, Ints, Ints]:
    """What a thread's calls leave open of each interval: its position, start and end."""
    if not len(start_ns):
        return start_ns, start_ns, end_ns
    taken = Union(thread.start_ns, thread.end_ns)
    free = complement(taken, int(start_ns.min()), int(end_ns.max()))
    holes = Stretches(
        np.zeros_like(free.start_ns), free.start_ns, free.end_ns, np.arange(len(free.start_ns))
    )
    interval, hole, spent = holes.within(start_ns, end_ns)
    begin = np.maximum(free.start_ns[hole], start_ns[interval])
    return interval, begin, begin + spent
