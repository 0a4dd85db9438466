"""Step by phase: host time, device work, exposed communication, memory high-water."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._by_step import step_rows
from maiprof_nb.analysis._intervals import Union, merged, minus, overlap, union
from maiprof_nb.analysis._memory_log import HOST, memory_devices, memory_log
from maiprof_nb.analysis._remember import remembered
from maiprof_nb.analysis.device_activity import activities
from maiprof_nb.analysis.phases import PHASES, phase_calls, phase_time, work_with_phase
from maiprof_nb.analysis.steps import steps
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.session import Session

Ints = npt.NDArray[np.int64]

UNRECORDED = "unrecorded"
_ROWS = (*PHASES, UNRECORDED)
_OTHER = PHASES.index("other")
_KEY = ["recording", "pid", "tid"]


@remembered
def phase_steps(session: Session) -> pd.DataFrame:
    """What each step spent in each phase.

    Returns
    -------
    DataFrame
        One row a step and phase, and one a step for host time in no recorded call
        (``unrecorded``): ``recording``, ``rank``, ``step``, ``ts_ns``, ``dur_ns``, ``phase``,
        ``host_ns`` (they sum to ``dur_ns`` exactly), ``device_ns`` (durations of the device work
        launched there, summed), ``kernels``, ``exposed_communication_ns`` (of its collectives,
        time with no compute beside them on their device) and ``peak_bytes`` (most allocated on
        any device while the host was there; missing where memory was not recorded).

    Raises
    ------
    NotAnswerableError
        If no steps were recorded.

    Notes
    -----
    Host time is that of the thread that marks the steps; while that is in no phase of a name,
    that of the loop's other threads (autograd's). Device work belongs to the step and phase that
    launched it, wherever it runs.
    """
    marks = steps(session)
    if marks.empty:
        raise NotAnswerableError(
            "no steps were recorded, so phases cannot be compared between steps",
            remedy="Call prof.step() after each step of the loop",
        )
    pieces = {number: _pieces(session, number) for number in marks["recording"].unique()}
    host = _host(marks, pieces)
    device, count, exposed = _launched(session, marks)
    peak = _peaks(session, marks, pieces)
    long = marks.loc[marks.index.repeat(len(_ROWS))].reset_index(drop=True)
    return long[["recording", "rank", "step", "ts_ns", "dur_ns"]].assign(
        phase=pd.Categorical(list(_ROWS) * len(marks), categories=_ROWS),
        host_ns=host.ravel(),
        device_ns=device.ravel(),
        kernels=count.ravel(),
        exposed_communication_ns=exposed.ravel(),
        peak_bytes=pd.Series(peak.ravel(), dtype="Int64").mask(peak.ravel() < 0),
    )


def _pieces(session: Session, recording: int) -> list[Union]:
    """Times of each phase; no moment is in two of them."""
    calls = phase_calls(session)
    calls = _without_marks(session, calls[calls["recording"] == recording])
    marked = session.table("steps")[_KEY].astype({"pid": "str", "tid": "str"}).drop_duplicates()
    working = calls[calls["kind"] != "python_calls"][_KEY].drop_duplicates()
    main = calls.merge(marked, on=_KEY)
    others = calls.merge(working, on=_KEY).merge(marked, on=_KEY, how="left", indicator="of")
    others = others[others["of"] == "left_only"]
    taken = union(np.empty(0, np.int64), np.empty(0, np.int64))
    found = [taken] * len(PHASES)
    named = range(_OTHER)
    # while the loop's thread is in no phase of a name, autograd's may be
    order = [*((main, code) for code in named), *((others, code) for code in named)]
    for threads, code in [*order, (main, _OTHER), (others, _OTHER)]:
        part = minus(phase_time(threads, code), taken)
        found[code], taken = merged([found[code], part]), merged([taken, part])
    return found


def _without_marks(session: Session, calls: pd.DataFrame) -> pd.DataFrame:
    """Calls without the marks of the steps themselves, which hold all of a step."""
    ranges = session.table("annotations")
    is_mark = ranges["name"].astype("str").str.startswith("ProfilerStep#")
    marks = ranges[is_mark][["recording", "event"]].drop_duplicates()
    at = calls[["recording", "event"]].merge(
        marks, on=["recording", "event"], how="left", indicator="of"
    )
    return calls[(at["of"] == "left_only").to_numpy()]


def _host(marks: pd.DataFrame, pieces: dict[int, list[Union]]) -> Ints:
    spent = np.zeros((len(marks), len(_ROWS)), dtype=np.int64)
    start = marks["ts_ns"].to_numpy(np.int64)
    end = start + marks["dur_ns"].to_numpy(np.int64)
    for recording, parts in pieces.items():
        mine = (marks["recording"] == recording).to_numpy()
        for code, part in enumerate(parts):
            spent[mine, code] = overlap(part, start[mine], end[mine])
    spent[:, -1] = end - start - spent[:, :-1].sum(axis=1)
    return spent


def _launched(session: Session, marks: pd.DataFrame) -> tuple[Ints, Ints, Ints]:
    """Duration, number and exposed communication of device work, by step and phase."""
    shape = (len(marks), len(_ROWS))
    device, count, exposed = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    work = work_with_phase(session, phase_calls(session))
    if work.empty:
        return device, count, exposed
    launches = session.table("launches")
    launches = launches[launches["correlation"].notna()].drop_duplicates(
        ["recording", "correlation"]
    )
    at = work.merge(
        launches[["recording", "correlation", "ts_ns"]],
        on=["recording", "correlation"], how="left", suffixes=("", "_launch"),
    )  # fmt: skip
    moment = at["ts_ns_launch"].fillna(at["ts_ns"]).to_numpy(np.int64)
    row = step_rows(marks, work["recording"].to_numpy(np.int64), moment)
    phase = work["phase"].to_numpy(np.int64)
    known = row >= 0
    place = (row[known], phase[known])
    np.add.at(device, place, work["dur_ns"].to_numpy(np.int64)[known])
    np.add.at(count, place, 1)
    np.add.at(exposed, place, _exposed(session)[known])
    return device, count, exposed


def _exposed(session: Session) -> Ints:
    """For each piece of device work its time as communication that no compute hides."""
    work = session.table("kernels")
    found = np.zeros(len(work), dtype=np.int64)
    start = work["ts_ns"].to_numpy(np.int64)
    end = start + work["dur_ns"].to_numpy(np.int64)
    talks = (work["kind"] == "communication").to_numpy()
    for one in activities(session):
        on = work["device"].isna() if one.device is None else work["device"] == one.device
        mine = talks & (work["recording"] == one.recording).to_numpy() & on.fillna(False).to_numpy()
        bare = minus(one.communication, one.compute)
        found[mine] = overlap(bare, start[mine], end[mine])
    return found


def _peaks(session: Session, marks: pd.DataFrame, pieces: dict[int, list[Union]]) -> Ints:
    """Most allocated by step and phase; -1 where memory was not recorded."""
    peak = np.full((len(marks), len(_ROWS)), -1, dtype=np.int64)
    for device in memory_devices(session):
        if device.axis != "time" or device.device_type == HOST:
            continue
        log = memory_log(session, device)
        for recording in _jobs_of(session, device.rank, marks):
            at, code = _moments(pieces[recording], log.ts_ns)
            inside = (at >= log.span.start_ns) & (at <= log.span.end_ns)
            at, code = at[inside], code[inside]
            row = step_rows(marks, np.full(len(at), recording), at)
            held = log.allocated_bytes[log.states_at(at)]
            known = row >= 0
            np.maximum.at(peak, (row[known], code[known]), held[known])
    return peak


def _jobs_of(session: Session, rank: int | None, marks: pd.DataFrame) -> list[int]:
    """Recordings whose steps a device's memory belongs to."""
    numbers = marks["recording"].unique().tolist()
    same = [n for n in numbers if session.recordings[n].rank == rank]
    return same if same or len(numbers) > 1 else numbers


def _moments(parts: list[Union], ts_ns: Ints) -> tuple[Ints, Ints]:
    """Every change of the log and every beginning of a piece of phase, with their phases."""
    at = np.concatenate((ts_ns, *(part.start_ns for part in parts)))
    code = np.full(len(at), len(PHASES), dtype=np.int64)
    for number, part in enumerate(parts):
        index = np.searchsorted(part.start_ns, at, side="right") - 1
        inside = index >= 0
        inside[inside] = at[inside] < part.end_ns[index[inside]]
        code[inside] = number
    return at, code
