"""The points and the device work of a schedule, read from a session's tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._schedule_device import DeviceWork, device_work
from maiprof_nb.analysis._schedule_host import (
    COPIES,
    LAUNCH,
    STEP_END,
    STEP_START,
    WAIT,
    WAITS,
    HostPoints,
    with_order,
)
from maiprof_nb.session import Session

Ints = npt.NDArray[np.int64]

_LONG_LAUNCH_NS, _DEEP_QUEUE = 100_000, 500


def read_points(
    session: Session,
    recording: int,
    calls: pd.DataFrame,
    work: pd.DataFrame,
    marks: pd.DataFrame,
    start_ns: int,
    end_ns: int,
) -> tuple[pd.DataFrame, HostPoints]:
    """Launches that started work, waits, and the marks of steps."""
    inside = calls[(calls["ts_ns"] >= start_ns) & (calls["ts_ns"] < end_ns)]
    correlations = work["correlation"].dropna().to_numpy(np.int64)
    name = inside["name"].astype("str")
    launched = inside["correlation"].fillna(-1).isin(correlations).to_numpy()
    launched &= ~inside["correlation"].duplicated().to_numpy()
    waits = name.str.contains(WAITS).to_numpy()
    chosen = inside[launched | waits]
    kind = np.where(launched, LAUNCH, WAIT)[launched | waits]
    keys = ["pid", "tid"]
    threads = pd.concat(
        [chosen[keys].astype("str"), _mark_threads(session, recording)[keys].astype("str")]
    ).drop_duplicates(ignore_index=True)
    number = pd.Series(threads.index, index=pd.MultiIndex.from_frame(threads))
    of_calls = number.loc[pd.MultiIndex.from_frame(chosen[keys].astype("str"))].to_numpy(np.int64)
    main = _main(session, recording, number, of_calls)
    begin = chosen["ts_ns"].to_numpy(np.int64)
    count = len(marks)
    mark_start = np.maximum(marks["ts_ns"].to_numpy(np.int64), start_ns)
    mark_end = (marks["ts_ns"] + marks["dur_ns"]).to_numpy(np.int64)
    in_ns = np.concatenate((begin, mark_start, mark_end))
    long = np.where(kind == WAIT, chosen["dur_ns"].to_numpy(np.int64), 0)
    out_ns = np.concatenate((begin + long, mark_start, mark_end))
    kinds = np.concatenate((kind, np.full(count, STEP_START), np.full(count, STEP_END)))
    thread = np.concatenate((of_calls, np.full(2 * count, main)))
    # The event of a mark is the position of its step.
    event = np.concatenate((chosen["event"].to_numpy(np.int64), np.tile(np.arange(count), 2)))
    rank = np.select([kinds == STEP_END, kinds == STEP_START], [0, 1], 2)
    order = np.lexsort((rank, in_ns))
    kinds, thread, event, in_ns, out_ns = (
        one[order].astype(np.int64) for one in (kinds, thread, event, in_ns, out_ns)
    )
    edges = _call_edges(session, recording, threads, main)
    points = with_order(kinds, thread, event, in_ns, out_ns, main, edges)
    points = _waiting_launches(points, _full_queues(inside, work))
    return threads, _waiting_launches(points, _blocking_copies(inside, work))


def _mark_threads(session: Session, recording: int) -> pd.DataFrame:
    found = session.table("steps")
    return found[found["recording"] == recording]


def _main(session: Session, recording: int, number: pd.Series, of_calls: Ints) -> int:
    """The thread that marks the steps, or the one with most launches."""
    marked = _mark_threads(session, recording)
    if len(marked):
        return int(number.loc[(str(marked["pid"].iloc[0]), str(marked["tid"].iloc[0]))])
    return int(np.bincount(of_calls).argmax()) if len(of_calls) else 0


def _call_edges(session: Session, recording: int, threads: pd.DataFrame, main: int) -> Ints:
    """Sorted starts and ends of what the loop's thread was recorded to call."""
    edges = [np.empty(0, dtype=np.int64)]
    if main >= len(threads):
        return edges[0]
    pid, tid = threads.iloc[main]
    for table in ("operators", "launches", "annotations"):
        rows = session.table(table)
        rows = rows[(rows["recording"] == recording) & (rows["tid"] == tid) & (rows["pid"] == pid)]
        start = rows["ts_ns"].to_numpy(np.int64)
        edges += [start, start + rows["dur_ns"].to_numpy(np.int64)]
    return np.sort(np.concatenate(edges))


def _waiting_launches(points: HostPoints, until: pd.Series) -> HostPoints:
    """Points whose launch call waited, by event until when."""
    own = (points.kind == LAUNCH) & np.isin(points.event, until.index)
    out_ns = points.out_ns.copy()
    out_ns[own] = until.loc[points.event[own]].to_numpy(np.int64)
    return replace(points, out_ns=out_ns)


def _blocking_copies(calls: pd.DataFrame, work: pd.DataFrame) -> pd.Series:
    """Copies whose call returned only after the copy was done."""
    copies = calls[calls["name"].astype("str").str.contains(COPIES)]
    done = work.assign(done_ns=work["ts_ns"] + work["dur_ns"]).groupby("correlation")["done_ns"]
    done_ns = copies["correlation"].map(done.max())
    end_ns = copies["ts_ns"] + copies["dur_ns"]
    late = (done_ns.notna() & (end_ns >= done_ns.fillna(0))).to_numpy()
    return pd.Series(end_ns[late].to_numpy(np.int64), index=copies["event"][late])


def _full_queues(calls: pd.DataFrame, work: pd.DataFrame) -> pd.Series:
    """Launches that took long while the device's queue was full."""
    ends = np.sort((work["ts_ns"] + work["dur_ns"]).to_numpy(np.int64))
    tied = calls[calls["correlation"].isin(work["correlation"].dropna())]
    begin = tied["ts_ns"].to_numpy(np.int64)
    queued = np.arange(len(tied)) - (
        np.searchsorted(ends, begin) - np.searchsorted(ends, begin.min(initial=0))
    )
    long = (tied["dur_ns"] >= _LONG_LAUNCH_NS).to_numpy() & (queued >= _DEEP_QUEUE)
    return (tied["ts_ns"] + tied["dur_ns"])[long].set_axis(tied["event"][long])


def read_work(
    work: pd.DataFrame, calls: pd.DataFrame, points: HostPoints, start_ns: int, end_ns: int
) -> tuple[DeviceWork, float]:
    """Device work with the point that launched it, and the share that has none.

    Without one it keeps its distance to the loop's thread.
    """
    launches = calls[calls["correlation"].notna()].drop_duplicates("correlation")
    launches = launches.set_index("correlation")
    event = work["correlation"].map(launches["event"]).fillna(-1).to_numpy(np.int64)
    called = work["correlation"].map(launches["ts_ns"])
    begin = work["ts_ns"].to_numpy(np.int64)
    dur = work["dur_ns"].to_numpy(np.int64)
    known = called.notna().to_numpy()
    called_ns = called.fillna(0).to_numpy(np.int64)
    keep = np.where(known, called_ns < end_ns, begin < end_ns) & (begin + dur > start_ns)
    is_launch = np.flatnonzero(points.kind == LAUNCH)
    by_event = pd.Series(is_launch, index=points.event[is_launch])
    launch = by_event.reindex(event).fillna(-1).to_numpy(np.int64).copy()
    main = np.flatnonzero(points.thread == points.main)
    place = np.searchsorted(np.maximum.accumulate(points.out_ns[main]), begin, side="right") - 1
    untied = ~known & (place >= 0)
    launch[untied] = main[place[untied]]
    moment = np.where(launch >= 0, points.in_ns[np.maximum(launch, 0)], start_ns)
    call_ns = work["correlation"].map(launches["dur_ns"]).fillna(0).to_numpy(np.int64)
    stream = work.groupby(["device", "stream"], dropna=False).ngroup().to_numpy(np.int64)
    columns = (np.arange(len(work)), launch, moment, call_ns, begin, dur, stream)
    made = device_work(*(one[keep] for one in columns))
    total = max(int(dur[keep].sum()), 1)
    return made, float(dur[keep & ~known].sum() / total)
