"""The dependency schedule of a recorded window, and its replay with other durations."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._host_pieces import PIECES, host_pieces
from maiprof_nb.analysis._remember import remembered
from maiprof_nb.analysis._schedule_device import DeviceWork, device_work
from maiprof_nb.analysis._schedule_host import (
    COPIES,
    DEVICE_WIDE,
    LAUNCH,
    STEP_END,
    STEP_START,
    WAIT,
    WAITS,
    HostPoints,
    with_order,
)
from maiprof_nb.analysis.steps import figure_window, steps
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.session import Session

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

TOLERANCE = 0.02  # of the window, and of the median step
MOST_UNTIED = 0.05  # of the device's time may have no recorded launch
_SOON_NS = 100_000  # a wait ends so soon after the work it awaited
_LONG_LAUNCH_NS, _DEEP_QUEUE = 100_000, 500


@dataclass(frozen=True)
class Durations:
    """What a replay may change; times in ns.

    Parameters
    ----------
    host_ns : ndarray of float64, points x pieces
        Host time before each point by what it was spent on (``PIECES``).
    work_ns : ndarray of float64
        Device time of each piece of work.
    gap_ns : ndarray of float64
        Time a stream stays empty before queued work.
    waits : ndarray of bool
        Whether each point waits for the device where it did.
    wait_at_step_end : bool
        Whether the host waits for the device once at the end of each step instead.
    rows : float
        Rows of input in a step, relative to the recording.
    """

    host_ns: Floats
    work_ns: Floats
    gap_ns: Floats
    waits: Flags
    wait_at_step_end: bool = False
    rows: float = 1.0

    def copy(self) -> Durations:
        """Arrays of its own."""
        arrays = ("host_ns", "work_ns", "gap_ns", "waits")
        return replace(self, **{name: getattr(self, name).copy() for name in arrays})


@dataclass(frozen=True)
class Schedule:
    """Who waited for whom in the window of one trace; times in ns of the session.

    ``own_ns`` is what a call costs that need not wait; ``awaited`` the work each waiting point
    waits for, from ``first_awaited`` on, and ``woken_ns`` how long after that work it goes on.
    Steps are pairs of points; a window without recorded steps has none.
    """

    recording: int
    start_ns: int
    points: HostPoints
    work: DeviceWork
    first_work: Ints
    own_ns: Ints
    first_awaited: Ints
    awaited: Ints
    woken_ns: Ints
    steps: pd.DataFrame
    durations: Durations
    untied_share: float


@dataclass(frozen=True)
class Replay:
    """When everything happens in a replay, in ns of the session."""

    point_ns: Floats
    work_end_ns: Floats
    step_end_ns: Floats
    window_ns: float


@remembered
def schedule(session: Session) -> Schedule:
    """The dependency schedule of the window of the figures, for the first rank with device work.

    Raises
    ------
    NotAnswerableError
        If no device work was recorded, or too much of it without its launch.

    Notes
    -----
    Host threads are sequences of pieces of time between launches, waits and marks of steps; a
    launch is an edge to its work; work follows the work before it on its stream and, where it
    started right after another stream's, that; a waiting call ends after the work it awaited.
    """
    recording = _recording(session)
    window = figure_window(session).window
    work = session.table("kernels")
    work = work[work["recording"] == recording]
    calls = session.table("launches")
    calls = calls[calls["recording"] == recording]
    start_ns, end_ns = window.start_ns, window.end_ns
    marks = steps(session)
    marks = marks[
        (marks["recording"] == recording) & (marks["ts_ns"] < end_ns) & (marks["end_ns"] > start_ns)
    ]
    threads, points = _points(session, recording, calls, work, marks, start_ns, end_ns)
    if len(points.kind) == 0:
        raise NotAnswerableError(
            "no launch of device work was recorded in the window",
            remedy="Record with CPU and CUDA activities, so that each kernel has its launch",
        )
    device, untied_share = _tied(work, calls, points, start_ns, end_ns)
    first_work = np.searchsorted(device.launch, np.arange(-1, len(points.kind) + 1))
    own, first_awaited, awaited, woken = _waits(points, device, calls)
    pieces = host_pieces(session, recording, threads, points, start_ns)
    durations = Durations(
        pieces,
        device.dur_ns.astype(np.float64),
        device.gap_ns.astype(np.float64),
        np.diff(first_awaited) > 0,
    )
    return Schedule(
        recording,
        start_ns,
        points,
        device,
        first_work,
        own,
        first_awaited,
        awaited,
        woken,
        _steps(marks, points),
        durations,
        untied_share,
    )


def replay(of: Schedule, durations: Durations | None = None) -> Replay:
    """Run the schedule again.

    Parameters
    ----------
    of : Schedule
    durations : Durations, optional
        Those of the schedule itself by default.

    Notes
    -----
    Every moment is the latest of sums of durations: shorter durations never end anything later.
    """
    d = of.durations if durations is None else durations
    out, ends = _run(of, d)
    points, work = np.array(out), np.array(ends)
    step_end = _step_ends(of, points, work)
    if len(step_end):
        last = float(step_end.max())
    else:
        last = float(work.max(initial=of.start_ns))
    return Replay(points, work, step_end, last - of.start_ns)


def replay_error(of: Schedule) -> float:
    """How far the unchanged replay is from the recording.

    Returns
    -------
    float
        The larger of two shares: the window's length against the recorded one, and the median
        step's absolute error in duration against the median step.
    """
    again = replay(of)
    recorded_ends = (
        of.steps["end_ns"].to_numpy(np.float64)
        if len(of.steps)
        else np.array([of.work.end_ns.max()], dtype=np.float64)
    )
    recorded = recorded_ends.max() - of.start_ns
    error = abs(again.window_ns - recorded) / max(recorded, 1)
    if len(of.steps) > 1:
        was, now = np.diff(recorded_ends), np.diff(again.step_end_ns)
        error = max(error, float(np.median(np.abs(now - was)) / max(np.median(was), 1)))
    return float(error)


def require_faithful(of: Schedule) -> float:
    """The error of the unchanged replay, if it is small enough to conclude from.

    Raises
    ------
    NotAnswerableError
        If it is not: the trace does not hold what the job waited for.
    """
    if of.untied_share > MOST_UNTIED:
        raise NotAnswerableError(
            f"{of.untied_share:.0%} of the device's time has no recorded launch",
            remedy="Record whole steps with CPU and CUDA activities",
        )
    error = replay_error(of)
    if error > TOLERANCE:
        raise NotAnswerableError(
            f"a replay of the recorded schedule misses the recorded step ends by {error:.1%}",
            remedy="The trace does not hold everything the job waited for; record with CPU and "
            "CUDA activities, and all ranks",
        )
    return error


def _recording(session: Session) -> int:
    with_work = session.table("kernels")["recording"].unique()
    if len(with_work) == 0:
        raise NotAnswerableError(
            "the recording holds no device work",
            remedy="Load a trace of a GPU job, recorded with ProfilerActivity.CUDA",
        )
    return int(min(with_work))


def _points(
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
    columns = (one[order].astype(np.int64) for one in (kinds, thread, event, in_ns, out_ns))
    points = with_order(*columns, main, _call_edges(session, recording, threads, main))
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


def _tied(
    work: pd.DataFrame, calls: pd.DataFrame, points: HostPoints, start_ns: int, end_ns: int
) -> tuple[DeviceWork, float]:
    """Device work with the point that launched it; without one it keeps its distance to the
    loop's thread."""
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


def _waits(
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
    cheap = (until - begin)[~blocked]
    usual = int(np.median(cheap)) if len(cheap) else 3_000
    usual_wake = _usual_wake(until - latest, blocked & explained)
    own[waiting[blocked]] = np.minimum(own[waiting[blocked]], usual)
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


def _steps(marks: pd.DataFrame, points: HostPoints) -> pd.DataFrame:
    first = np.flatnonzero(points.kind == STEP_START)
    last = np.flatnonzero(points.kind == STEP_END)
    first = first[np.argsort(points.event[first])]
    last = last[np.argsort(points.event[last])]
    made = marks[["step", "ts_ns", "end_ns"]].reset_index(drop=True)
    return made.assign(first=first, last=last)


def _run(of: Schedule, d: Durations) -> tuple[list[float], list[float]]:
    """The replay itself: points in order, each with the work it launches."""
    before, also = of.points.before.tolist(), of.points.also.tolist()
    host = d.host_ns.sum(axis=1).tolist()
    own, woken = of.own_ns.tolist(), of.woken_ns.tolist()
    waits, first_awaited = d.waits.tolist(), of.first_awaited.tolist()
    awaited, first_work = of.awaited.tolist(), of.first_work.tolist()
    work = of.work
    latency, previous, gap = work.latency_ns.tolist(), work.before.tolist(), d.gap_ns.tolist()
    other, handover, dur = work.awaits.tolist(), work.handover_ns.tolist(), d.work_ns.tolist()
    at_step_end = (of.points.kind == STEP_END).tolist() if d.wait_at_step_end else None
    origin = float(of.start_ns)
    out = [0.0] * len(before)
    end = [0.0] * len(dur)
    latest = origin

    def start_all(first: int, last: int, called: float) -> float:
        reached = origin
        for w in range(first, last):
            at = called + latency[w]
            if (p := previous[w]) >= 0 and (queued := end[p] + gap[w]) > at:
                at = queued
            if (o := other[w]) >= 0 and (handed := end[o] + handover[w]) > at:
                at = handed
            end[w] = at + dur[w]
            reached = max(reached, end[w])
        return reached

    latest = start_all(0, first_work[1], origin)
    for i, previous_point in enumerate(before):
        now = (out[previous_point] if previous_point >= 0 else origin) + host[i]
        if also[i] >= 0 and out[also[i]] > now:
            now = out[also[i]]
        if first_work[i + 2] > first_work[i + 1]:
            latest = max(latest, start_all(first_work[i + 1], first_work[i + 2], now))
        now += own[i]
        if waits[i]:
            for place in range(first_awaited[i], first_awaited[i + 1]):
                now = max(now, end[awaited[place]] + woken[i])
        if at_step_end is not None and at_step_end[i]:
            now = max(now, latest)
        out[i] = now
    return out, end


def _step_ends(of: Schedule, points: Floats, work: Floats) -> Floats:
    if of.steps.empty:
        return np.empty(0, dtype=np.float64)
    marked = points[of.steps["last"].to_numpy(np.int64)]
    first = np.searchsorted(of.work.launch, of.steps["first"].to_numpy(np.int64))
    last = np.searchsorted(of.work.launch, of.steps["last"].to_numpy(np.int64))
    done = [work[a:b].max(initial=0) for a, b in zip(first, last, strict=True)]
    return np.maximum(marked, np.array(done))


__all__ = [
    "PIECES",
    "TOLERANCE",
    "Durations",
    "Replay",
    "Schedule",
    "replay",
    "replay_error",
    "require_faithful",
    "schedule",
]
