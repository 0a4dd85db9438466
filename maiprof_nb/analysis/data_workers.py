"""How many threads or processes prepare input, and how many would keep up with the loop."""

from __future__ import annotations

import math
import re

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._by_step import step_rows, sums_by_step
from maiprof_nb.analysis._intervals import Union, overlap, union_of
from maiprof_nb.analysis._remember import remembered
from maiprof_nb.analysis.gap_causes import gap_causes
from maiprof_nb.analysis.phases import PHASES, phase_calls
from maiprof_nb.analysis.steps import steps
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.session import Session

Ints = npt.NDArray[np.int64]

THREADS, PROCESSES, NONE = "threads", "processes", "none"
_PROCESSES = re.compile(r"_MultiProcessingDataLoaderIter")
# Python calls in which a thread has nothing to do, and what only encloses its life.
_RESTING = re.compile(
    r"_bootstrap|threading\.py\(\d+\): (?:run|wait|join)|thread\.py\(\d+\): _worker"
    r"|queues?\.py\(\d+\): get|method '?(?:acquire|get|poll|select|recv|sleep)"
    r"|function (?:select|sleep)"
    r"|selectors\.py|connection\.py\(\d+\): (?:wait|poll|recv)"
)
_TAKES_PART = 0.05  # of the loop's wait; threads busy for less do something else


@remembered
def data_workers(session: Session) -> pd.DataFrame:
    """Who prepares input in each recording whose steps load any.

    Returns
    -------
    DataFrame
        ``recording``, ``rank``, ``workers_are`` (``threads``, ``processes`` - not seen by the
        profiler - or ``none``: the training thread loads itself), ``workers`` (their number;
        missing for processes), ``busy_share`` (of the time the training thread is in data
        loading, mean over the workers), ``loading_ns`` (of the training thread, median step),
        ``wait_ns`` (a device idle for input, median step), ``rest_ns`` (what remains of the
        median step), ``work_ns`` (busy time of all workers, median step), ``enough``
        (workers that would do that work in ``rest_ns`` if they worked ahead of the loop;
        missing for processes) and ``event`` (longest call of data loading) with its ``table``.

    Raises
    ------
    NotAnswerableError
        If no device work, or fewer than two steps, were recorded.
    """
    found = gap_causes(session)
    marks = steps(session)
    marks = marks[marks.groupby("recording")["step"].transform("size") > 1].reset_index(drop=True)
    if marks.empty:
        raise NotAnswerableError(
            "without two recorded steps the work of the loader cannot be set against the loop's",
            remedy="Call prof.step() after each step of the loop",
        )
    calls = phase_calls(session)
    rows = []
    for recording in marks["recording"].unique():
        own = marks[marks["recording"] == recording].reset_index(drop=True)
        row = _of_one(session, int(recording), own, found, calls)
        if row is not None:
            rows.append(row)
    columns = [
        "recording", "rank", "workers_are", "workers", "busy_share", "loading_ns", "wait_ns",
        "rest_ns", "work_ns", "enough", "table", "event",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns).astype({"workers": "Int64", "enough": "Int64"})


def _of_one(
    session: Session, recording: int, marks: pd.DataFrame, found: pd.DataFrame, calls: pd.DataFrame
) -> dict[str, object] | None:
    thread = session.table("steps")
    thread = thread[thread["recording"] == recording].iloc[0]
    mine = calls[
        (calls["recording"] == recording)
        & (calls["pid"] == str(thread["pid"]))
        & (calls["tid"] == str(thread["tid"]))
        & (calls["phase"] == PHASES.index("data loading"))
    ]
    if mine.empty:
        return None
    loading = union_of(mine)
    start = marks["ts_ns"].to_numpy(np.int64)
    end = start + marks["dur_ns"].to_numpy(np.int64)
    waits = _idle_for_input(marks, found[found["recording"] == recording])
    rest = float(np.median(np.maximum(end - start - waits, 1)))
    busy = _workers(session, recording, loading)
    if _loads_in_processes(session, recording):
        kind, number, work = PROCESSES, None, float("nan")
    elif busy:
        kind, number = THREADS, len(busy)
        work = float(np.median(sum(overlap(one, start, end) for one in busy)))
    else:
        kind, number, work = NONE, 0, float(np.median(overlap(loading, start, end)))
    during = [_share_during(one, loading) for one in busy]
    longest = mine.loc[mine["dur_ns"].idxmax()]
    return {
        "recording": recording,
        "rank": session.recordings[recording].rank,
        "workers_are": kind,
        "workers": number,
        "busy_share": float(np.mean(during)) if during else float("nan"),
        "loading_ns": float(np.median(overlap(loading, start, end))),
        "wait_ns": float(np.median(waits)),
        "rest_ns": rest,
        "work_ns": work,
        "enough": None if math.isnan(work) else math.ceil(work / rest),
        "table": longest["kind"],
        "event": int(longest["event"]),
    }


def _idle_for_input(marks: pd.DataFrame, found: pd.DataFrame) -> Ints:
    """Idle time for input by step, of the device that has most of it."""
    best = np.zeros(len(marks), dtype=np.int64)
    for _, mine in found.groupby("device", dropna=False):
        ends = (mine["ts_ns"] + mine["dur_ns"] - 1).to_numpy(np.int64)
        row = step_rows(marks, mine["recording"].to_numpy(np.int64), ends)
        waits = sums_by_step(marks, row, mine["input_ns"].to_numpy(np.int64))
        best = waits if waits.sum() > best.sum() else best
    return best


def _workers(session: Session, recording: int, loading: Union) -> list[Union]:
    """When each thread that takes part in preparing input is busy."""
    python = session.table("python_calls")
    python = python[python["recording"] == recording]
    others = pd.concat(
        [
            table.loc[table["recording"] == recording, ["pid", "tid"]].astype("str")
            for table in (session.table("steps"), session.table("launches"))
        ]
    ).drop_duplicates()
    of_the_loop = set(zip(others["pid"], others["tid"], strict=True))
    names = python["name"].cat.categories
    resting = python["name"].isin([name for name in names if _RESTING.search(str(name))])
    busy = []
    for key, rows in python[~resting].groupby(["pid", "tid"], observed=True):
        if (str(key[0]), str(key[1])) in of_the_loop:
            continue
        one = union_of(rows)
        if _share_during(one, loading) >= _TAKES_PART:
            busy.append(one)
    return busy


def _loads_in_processes(session: Session, recording: int) -> bool:
    for table in ("annotations", "operators", "python_calls"):
        rows = session.table(table)
        rows = rows[rows["recording"] == recording]
        names = rows["name"].cat.categories
        if rows["name"].isin([n for n in names if _PROCESSES.search(str(n))]).any():
            return True
    return False


def _share_during(busy: Union, loading: Union) -> float:
    inside = int(overlap(busy, loading.start_ns, loading.end_ns).sum())
    return inside / max(loading.length_ns, 1)
