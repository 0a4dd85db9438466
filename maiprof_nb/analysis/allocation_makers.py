"""Which operator was running when an allocation was made, in which module, phase and step."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._memory_origins import modules_by_stack
from maiprof_nb.analysis._memory_phases import phases_at, phases_of_stacks, steps_at
from maiprof_nb.analysis._nesting import nesting_order, parents
from maiprof_nb.analysis._remember import remembered
from maiprof_nb.analysis.active_memory import MemoryDevice, MemoryLog, memory_devices, memory_log
from maiprof_nb.analysis.operator_ranking import with_origin
from maiprof_nb.analysis.phases import PHASES, phase_calls
from maiprof_nb.session import Session

Ints = npt.NDArray[np.int64]

_NONE = -1


def allocation_makers(session: Session, device: MemoryDevice | None = None) -> pd.DataFrame:
    """The innermost operator running when each allocation was made.

    Parameters
    ----------
    session : Session
        What was recorded.
    device : MemoryDevice, optional
        One of `memory_devices`; the first by default.

    Returns
    -------
    DataFrame
        One row an allocation, as in the log: ``allocation``; ``recording`` and ``event`` of
        the operator and its name as ``operator`` (missing where none ran, for what is older
        than the log, and where the log's clock is not tied to a trace); ``candidates``, the
        threads on which an operator ran; ``clock_unsure``, True where the operator began or
        ended no farther away than the clocks may be apart; ``module``, ``phase``, ``step``.

    Raises
    ------
    NotAnswerableError
        If nothing in the session says anything about memory.

    Notes
    -----
    The profiler's memory events carry their thread, so the operator is the one around them.
    A snapshot's do not: of the operators running then in traces of its rank, the one that
    started last is named, and ``candidates`` above 1 says that it is a guess. The operator
    that made an allocation is not the one that keeps it alive.
    """
    return makers_of(session, memory_log(session, device))


def makers_of(session: Session, log: MemoryLog) -> pd.DataFrame:
    """As `allocation_makers`, of a log already replayed; remembered with the log."""
    return _makers(log, session.whole)


def maker(session: Session, recording: int | None, allocation: int) -> pd.Series[Any] | None:
    """The row of `allocation_makers` of one allocation; None where no operator is known."""
    for device in memory_devices(session):
        if recording not in (None, device.recording) or device.axis != "time":
            continue
        found = allocation_makers(session, device)
        mine = found[(found["allocation"] == allocation) & found["event"].notna()]
        if len(mine):
            return mine.iloc[0]
    return None


def traces_of(session: Session, log: MemoryLog) -> list[int]:
    """Recordings whose operators can have made the allocations of a log."""
    device = log.device
    if device.axis != "time":
        return []
    if device.kind == "trace":
        return [device.recording]
    traces = [(n, one.rank) for n, one in enumerate(session.recordings) if one.kind == "trace"]
    if device.rank is None:
        return [number for number, _ in traces]
    return [number for number, rank in traces if rank in (None, device.rank)]


def threads_of_allocations(session: Session, log: MemoryLog) -> pd.Series[Any] | None:
    """``pid tid`` of each allocation's memory event; None where the source has no threads."""
    if log.device.kind != "trace":
        return None
    events = session.recordings[log.device.recording].table("memory_events")
    thread = events["pid"].astype(str) + " " + events["tid"].astype(str)
    of_event = pd.Series(thread.to_numpy(), index=events["event"].to_numpy(np.int64))
    return log.allocations["allocation"].map(of_event).reset_index(drop=True)  # ids are events'


@remembered
def _makers(log: MemoryLog, session: Session) -> pd.DataFrame:
    lives = log.allocations
    operators = session.table("operators")
    operators = operators[operators["recording"].isin(traces_of(session, log)).to_numpy()]
    operators = operators.reset_index(drop=True)
    row, candidates = _running(operators, lives, threads_of_allocations(session, log))
    made = operators[["recording", "event", "name", "ts_ns", "dur_ns"]].reindex(row)
    made = made.reset_index(drop=True)  # all missing where none ran
    at = lives["ts_ns"].to_numpy(np.int64)
    since = at - made["ts_ns"].to_numpy(np.float64)
    nearest = np.fmin(since, made["dur_ns"].to_numpy(np.float64) - since)
    found = pd.DataFrame(
        {
            "allocation": lives["allocation"].to_numpy(),
            "recording": made["recording"].astype("Int64"),
            "event": made["event"].astype("Int64"),
            "operator": made["name"].astype(object).where(made["event"].notna(), pd.NA),
            "candidates": candidates,
            "clock_unsure": nearest < _slack_ns(session, log, made),
        }
    )
    step = steps_at(session, log, at).mask(lives["before_log"].to_numpy(bool))
    return found.assign(
        module=_modules(session, log, found),
        phase=_phases(session, log, found),
        step=step.to_numpy(),
    )


def _running(
    operators: pd.DataFrame, lives: pd.DataFrame, asking: pd.Series[Any] | None
) -> tuple[Ints, Ints]:
    """Row of the operator that started last of those running, and on how many threads any ran."""
    at, new = lives["ts_ns"].to_numpy(np.int64), ~lives["before_log"].to_numpy(bool)
    row, candidates = np.full(len(at), _NONE, dtype=np.int64), np.zeros(len(at), dtype=np.int64)
    thread = operators["pid"].astype(str) + " " + operators["tid"].astype(str)
    start = operators["ts_ns"].to_numpy(np.int64)
    end = start + operators["dur_ns"].to_numpy(np.int64)
    for (_, name), mine in operators.groupby([operators["recording"], thread]).indices.items():
        asked = np.flatnonzero(new if asking is None else new & asking.eq(name).to_numpy(bool))
        found = innermost_at(start[mine], end[mine], at[asked])
        asked, found = asked[found >= 0], mine[found[found >= 0]]
        candidates[asked] += 1
        later = (row[asked] == _NONE) | (start[found] > start[row[asked]])
        row[asked[later]] = found[later]
    return row, candidates


def innermost_at(start: Ints, end: Ints, at: Ints) -> Ints:
    """Which of one thread's intervals runs at each moment, the innermost of them; or -1."""
    if len(start) == 0:
        return np.full(len(at), _NONE, dtype=np.int64)
    one = np.zeros(len(start), dtype=np.int64)
    order = nesting_order(one, start, end)
    start, end = start[order], end[order]
    parent = parents(one, start, end)
    found = np.searchsorted(start, at, side="right") - 1
    while (over := (found >= 0) & (end[np.maximum(found, 0)] < at)).any():
        found[over] = parent[found[over]]
    return np.where(found >= 0, order[np.maximum(found, 0)], _NONE).astype(np.int64)


def _slack_ns(session: Session, log: MemoryLog, made: pd.DataFrame) -> Ints:
    """How far the clocks of the log and of each operator's trace may be apart."""
    if log.device.kind == "trace":
        return np.zeros(len(made), dtype=np.int64)
    slack = np.array([one.uncertainty_ns or 0 for one in session.placements], dtype=np.int64)
    return slack[log.device.recording] + slack[made["recording"].fillna(0).to_numpy(np.int64)]


def _modules(session: Session, log: MemoryLog, found: pd.DataFrame) -> pd.Series[Any]:
    """The nn.Module round the operator; else the file and the call of a module in the stack."""
    module = modules_by_stack(log).reset_index(drop=True)
    known = found["event"].notna().to_numpy(bool)
    if known.any():
        calls = found.loc[known, ["recording", "event"]].astype("int64")
        texts = with_origin(session, calls, by="module")["module"].astype(object)
        told = pd.Series(texts.to_numpy(), index=found.index[known], dtype=object).dropna()
        module[told.index] = told
    return module.where(module.notna(), pd.NA)


def _phases(session: Session, log: MemoryLog, found: pd.DataFrame) -> pd.Series[Any]:
    """By the stack, else by the operator, else by what ran then on any thread."""
    lives = log.allocations
    by_stack = phases_of_stacks(log, lives["stack"]).reset_index(drop=True)
    timed = phases_at(session, log, lives["ts_ns"].to_numpy(np.int64))
    timed = timed.mask(lives["before_log"].to_numpy(bool), pd.NA)
    by_operator = _phase_of_operators(session, found)
    told = by_stack.where(by_stack.notna(), by_operator)
    return told.where(told.notna(), timed)


def _phase_of_operators(session: Session, found: pd.DataFrame) -> pd.Series[Any]:
    phase = pd.Series([pd.NA] * len(found), dtype=object)
    known = found["event"].notna().to_numpy(bool)
    if known.any():
        keys = ["recording", "event"]
        calls = found.loc[known, keys].astype("int64")
        codes = calls.merge(phase_calls(session)[[*keys, "phase"]], on=keys, how="left")["phase"]
        names = codes.map(dict(enumerate(PHASES[:-1])))  # the last is: none of these
        phase[known] = names.where(names.notna(), pd.NA).to_numpy()
    return phase
