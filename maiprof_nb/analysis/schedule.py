"""The dependency schedule of a recorded window, and its replay with other durations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis._host_pieces import PIECES, host_pieces
from maiprof_nb.analysis._remember import remembered
from maiprof_nb.analysis._schedule_device import DeviceWork
from maiprof_nb.analysis._schedule_host import STEP_END, STEP_START, HostPoints
from maiprof_nb.analysis._schedule_reading import read_points, read_work
from maiprof_nb.analysis._schedule_waits import read_waits
from maiprof_nb.analysis.steps import figure_window, steps
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.session import Session

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

TOLERANCE = 0.02  # of the window, and of the median step
MOST_UNTIED = 0.05  # of the device's time may have no recorded launch


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
    main_thread: str
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

    @cached_property
    def fixed(self) -> dict[str, list[int]]:
        """What no replay changes, as plain lists: a loop reads them faster."""
        return {
            "before": self.points.before.tolist(),
            "also": self.points.also.tolist(),
            "step_end": (self.points.kind == STEP_END).tolist(),
            "own": self.own_ns.tolist(),
            "woken": self.woken_ns.tolist(),
            "first_awaited": self.first_awaited.tolist(),
            "awaited": self.awaited.tolist(),
            "first_work": self.first_work.tolist(),
            "latency": self.work.latency_ns.tolist(),
            "previous": self.work.before.tolist(),
            "other": self.work.awaits.tolist(),
            "handover": self.work.handover_ns.tolist(),
        }

    @cached_property
    def unchanged(self) -> Replay:
        """The replay with nothing changed."""
        return replay(self)


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
    threads, points = read_points(session, recording, calls, work, marks, start_ns, end_ns)
    if len(points.kind) == 0:
        raise NotAnswerableError(
            "no launch of device work was recorded in the window",
            remedy="Record with CPU and CUDA activities, so that each kernel has its launch",
        )
    device, untied_share = read_work(work, calls, points, start_ns, end_ns)
    first_work = np.searchsorted(device.launch, np.arange(-1, len(points.kind) + 1))
    own, first_awaited, awaited, woken = read_waits(points, device, calls)
    pieces = host_pieces(session, recording, threads, points, start_ns)
    durations = Durations(
        pieces,
        device.dur_ns.astype(np.float64),
        device.gap_ns.astype(np.float64),
        np.diff(first_awaited) > 0,
    )
    return Schedule(
        recording,
        "/".join(threads.iloc[points.main]),
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
    last = float((step_end if len(step_end) else work).max(initial=of.start_ns))
    return Replay(points, work, step_end, last - of.start_ns)


def replay_error(of: Schedule) -> float:
    """How far the unchanged replay is from the recording.

    Returns
    -------
    float
        The largest of three shares: the error of the window's length, of the median step's
        duration, and how far 95 % of the device work ends from where it was recorded, of the
        window.
    """
    again = of.unchanged
    recorded_ends = (
        of.steps["end_ns"].to_numpy(np.float64)
        if len(of.steps)
        else np.array([of.work.end_ns.max()], dtype=np.float64)
    )
    recorded = recorded_ends.max() - of.start_ns
    error = abs(again.window_ns - recorded) / max(recorded, 1)
    moved = np.abs(again.work_end_ns - of.work.end_ns)
    if len(moved):
        error = max(error, float(np.percentile(moved, 95)) / max(recorded, 1))
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
            f"{units.percent(of.untied_share)} of the device's time has no recorded launch",
            remedy="Record whole steps with CPU and CUDA activities",
        )
    error = replay_error(of)
    if error > TOLERANCE:
        raise NotAnswerableError(
            "a replay of the recorded schedule misses the recorded step ends by "
            f"{units.percent(error)}",
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


def _steps(marks: pd.DataFrame, points: HostPoints) -> pd.DataFrame:
    first = np.flatnonzero(points.kind == STEP_START)
    last = np.flatnonzero(points.kind == STEP_END)
    first = first[np.argsort(points.event[first])]
    last = last[np.argsort(points.event[last])]
    made = marks[["step", "ts_ns", "end_ns"]].reset_index(drop=True)
    return made.assign(first=first, last=last)


def _run(of: Schedule, d: Durations) -> tuple[list[float], list[float]]:  # noqa: C901 - one hot loop
    """The replay itself: points in order, each with the work it launches."""
    fixed = of.fixed
    before, also, own, woken = fixed["before"], fixed["also"], fixed["own"], fixed["woken"]
    first_awaited, awaited = fixed["first_awaited"], fixed["awaited"]
    first_work, latency, previous = fixed["first_work"], fixed["latency"], fixed["previous"]
    other, handover, step_end = fixed["other"], fixed["handover"], fixed["step_end"]
    host, waits = d.host_ns.sum(axis=1).tolist(), d.waits.tolist()
    gap, dur = d.gap_ns.tolist(), d.work_ns.tolist()
    latest = origin = float(of.start_ns)
    out = [0.0] * len(before)
    end = [0.0] * len(dur)
    for i in range(-1, len(before)):  # -1: what was launched before the window
        now = origin
        if i >= 0:
            now = (out[before[i]] if before[i] >= 0 else origin) + host[i]
            if also[i] >= 0 and out[also[i]] > now:
                now = out[also[i]]
        for w in range(first_work[i + 1], first_work[i + 2]):
            at = now + latency[w]
            if (p := previous[w]) >= 0 and (queued := end[p] + gap[w]) > at:
                at = queued
            if (o := other[w]) >= 0 and (handed := end[o] + handover[w]) > at:
                at = handed
            end[w] = at + dur[w]
            latest = max(latest, end[w])
        if i < 0:
            continue
        now += own[i]
        if waits[i]:
            for place in range(first_awaited[i], first_awaited[i + 1]):
                now = max(now, end[awaited[place]] + woken[i])
        if d.wait_at_step_end and step_end[i]:
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
