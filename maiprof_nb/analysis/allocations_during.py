"""The allocations made while something ran: an operator, a range, a module, a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._work_owners import work_owners
from maiprof_nb.analysis.active_memory import MemoryLog
from maiprof_nb.analysis.allocation_makers import threads_of_allocations, traces_of
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow

Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

# A table -> the tables in which calls of its names are, each with: on its own thread only?
# Ranges and Python calls wait for what other threads do for them, as backward() does.
_HOST = {"operators": True, "launches": True, "annotations": False}
_CALLS = {
    "operators": _HOST,
    "annotations": _HOST,
    "launches": {"launches": True},
    "python_calls": {"python_calls": False},
    "modules": {"python_calls": False},
}
_COLUMNS = ["recording", "ts_ns", "dur_ns", "thread"]
_ANY = ""


@dataclass(frozen=True)
class During:
    """Which allocations of a log were made while the calls ran.

    Parameters
    ----------
    made : array of bool
        For each row of the log's ``allocations``: made while one of the calls ran.
    outlived : array of bool
        Of those, the ones that live on after that call (the outermost of its name) ended.
    """

    made: Flags
    outlived: Flags


def allocations_during(
    session: Session,
    log: MemoryLog,
    table: str,
    *,
    name: str | None = None,
    row: int | None = None,
    recording: int | None = None,
) -> During | None:
    """The allocations made while calls of a name, or one call, ran.

    Parameters
    ----------
    session, log : Session and MemoryLog
        The recording, and one device's memory on its axis.
    table : str
        ``operators``, ``annotations``, ``launches``, ``python_calls``, ``modules`` (names of
        nn.Modules), ``kernels`` (then: of the operators that launched them) or ``steps``.
    name : str, optional
        All calls of that name; ``ProfilerStep*`` stands for every step.
    row : int, optional
        One call by its event id.
    recording : int, optional
        Whose row it is.

    Returns
    -------
    During or None
        None where the log's clock is not tied to a trace, or the table is of another kind.

    Notes
    -----
    Operators count on the thread of the allocation where the source knows it; ranges, Python
    calls and steps on all threads of the trace.
    """
    if log.device.axis != "time" or not traces_of(session, log):
        return None
    calls = _calls(session, table, name, row)
    if calls is None:
        return None
    wanted = traces_of(session, log) if recording is None else [recording]
    calls = calls[calls["recording"].isin(wanted)]
    lives, threads = log.allocations, threads_of_allocations(session, log)
    at, new = lives["ts_ns"].to_numpy(np.int64), ~lives["before_log"].to_numpy(bool)
    gone = lives["end_ns"].to_numpy(np.int64, na_value=np.iinfo(np.int64).max)
    made, outlived = np.zeros(len(at), dtype=bool), np.zeros(len(at), dtype=bool)
    lane = calls["thread"] if threads is not None else pd.Series(_ANY, index=calls.index)
    for thread, mine in calls.groupby([calls["recording"], lane]):
        start = mine["ts_ns"].to_numpy(np.int64)
        end = _end_of_outermost(start, start + mine["dur_ns"].to_numpy(np.int64), at)
        here = new & (at <= end)
        if threads is not None and thread[1] != _ANY:
            here &= threads.eq(thread[1]).to_numpy(bool)
        made |= here
        outlived |= here & (gone > end)
    return During(made, outlived)


def allocations_in(log: MemoryLog, window: TimeWindow) -> During:
    """Allocations made in a time, and those of them that live on at its end."""
    lives = log.allocations
    at = lives["ts_ns"].to_numpy(np.int64)
    gone = lives["end_ns"].to_numpy(np.int64, na_value=np.iinfo(np.int64).max)
    made = ~lives["before_log"].to_numpy(bool) & (at >= window.start_ns) & (at <= window.end_ns)
    return During(made, made & (gone > window.end_ns))


def made_by_stack(log: MemoryLog, during: During) -> pd.DataFrame:
    """What was made, by stack.

    Returns
    -------
    DataFrame
        ``stack`` (missing: none recorded), ``label``, ``allocations``, ``size_bytes``,
        ``largest_bytes``, and of them what outlived it: ``kept`` (number), ``kept_bytes``;
        most bytes first.
    """
    lives = log.allocations.loc[during.made, ["stack", "size_bytes"]]
    kept = during.outlived[during.made]
    lives = lives.assign(kept=kept, kept_bytes=lives["size_bytes"].where(kept, 0))
    found = lives.groupby("stack", dropna=False).agg(
        allocations=("size_bytes", "size"),
        size_bytes=("size_bytes", "sum"),
        largest_bytes=("size_bytes", "max"),
        kept=("kept", "sum"),
        kept_bytes=("kept_bytes", "sum"),
    )
    found = found.sort_values("size_bytes", ascending=False, kind="stable").reset_index()
    label = log.stacks.set_index("stack")["label"].astype(object)
    names = found["stack"].map(label).astype(object).fillna("no stack recorded")
    found.insert(1, "label", names)
    return found


def _calls(session: Session, table: str, name: str | None, row: int | None) -> pd.DataFrame | None:
    """``recording, ts_ns, dur_ns, thread`` of the calls asked for; "" for any thread."""
    if table == "steps":
        rows = session.table("steps")
        return _spans(rows[_wanted(rows, None, row)], own_thread=False)
    if table == "kernels":
        work, operators = session.table("kernels"), session.table("operators")
        owners = work_owners(session).owner[_wanted(work, name, row)]
        return _spans(operators.iloc[np.unique(owners[owners >= 0])], own_thread=True)
    if table not in _CALLS:
        return None
    name = f"nn.Module: {name}" if table == "modules" and name is not None else name
    parts = []
    for part, own_thread in _CALLS[table].items():
        rows = session.table(part)
        parts.append(_spans(rows[_wanted(rows, name, row)], own_thread=own_thread))
    return pd.concat(parts, ignore_index=True)


def _wanted(rows: pd.DataFrame, name: str | None, row: int | None) -> Flags:
    if row is not None:
        return rows["event"].eq(row).to_numpy(bool)
    if name is None:
        return np.ones(len(rows), dtype=bool)
    names = rows["name"].cat.categories
    every_step = name == "ProfilerStep*"
    same = [n for n in names if n == name or (every_step and str(n).startswith("ProfilerStep#"))]
    return rows["name"].isin(same).to_numpy(bool)


def _spans(rows: pd.DataFrame, *, own_thread: bool) -> pd.DataFrame:
    thread: Any = rows["pid"].astype(str) + " " + rows["tid"].astype(str) if own_thread else _ANY
    return rows.assign(thread=thread)[_COLUMNS]


def _end_of_outermost(start: Ints, end: Ints, at: Ints) -> Ints:
    """At each moment the latest end of the intervals begun by then; least where none was."""
    order = np.argsort(start, kind="stable")
    reach = np.maximum.accumulate(end[order])
    row = np.searchsorted(start[order], at, side="right") - 1
    return np.where(row >= 0, reach[np.maximum(row, 0)], np.iinfo(np.int64).min)
