"""In which phase and step of the job the allocations of a log were made."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._intervals import union
from maiprof_nb.analysis._memory_log import MemoryLog
from maiprof_nb.analysis.phases import PHASES, phase_calls
from maiprof_nb.analysis.steps import steps
from maiprof_nb.session import Session

Ints = npt.NDArray[np.int64]

OPTIMIZER = "optimizer"
_RANGES = (  # names of a snapshot's own ranges that say the phase
    (OPTIMIZER, re.compile(r"Optimizer\.step")),
    ("backward", re.compile(r"backward", re.IGNORECASE)),
    ("forward", re.compile(r"forward", re.IGNORECASE)),
    ("data loading", re.compile(r"DataLoader|data_?load", re.IGNORECASE)),
)
_STACK_PHASES = (
    (OPTIMIZER, re.compile(r"optim\w*[/\\]\w+\.py|optimizers?\.py|Optimizer\.step")),
    ("backward", re.compile(r"torch::autograd::(?:generated|Engine|Node)|evaluate_function"
                            r"|AccumulateGrad")),
    ("forward", re.compile(r"\bforward\b|_call_impl")),
)  # fmt: skip


def phases_of_stacks(log: MemoryLog, stack: pd.Series) -> pd.Series:
    """The phase that each stack names, by its functions and files; missing where none does."""
    texts = log.stacks["frames"].astype(object)
    found = pd.Series(pd.NA, index=log.stacks["stack"].to_numpy(np.int64), dtype=object)
    for name, pattern in reversed(_STACK_PHASES):
        found[texts.str.contains(pattern).to_numpy(bool)] = name
    mapped = stack.map(found) if len(found) else pd.Series(pd.NA, index=stack.index)
    return mapped.astype(object)


def phases_at(session: Session, log: MemoryLog, at_ns: Ints) -> pd.Series:
    """The phase at each moment, by the snapshot's own ranges, else by the trace of its rank."""
    found = np.full(len(at_ns), None, dtype=object)
    ranges = session.recordings[log.device.recording].table("allocator_ranges")
    if len(ranges) and log.device.axis in ("time", "own time"):
        offset = session.placements[log.device.recording].offset_ns
        names = ranges["name"].astype(object)
        for name, pattern in reversed(_RANGES):
            mine = ranges[names.str.contains(pattern).to_numpy(bool)]
            start = mine["ts_ns"].to_numpy(np.int64) + offset
            _mark(found, at_ns, start, start + mine["dur_ns"].to_numpy(np.int64), name)
    if log.device.axis == "time" and pd.isna(found).any():
        untold = pd.isna(found)
        traced = np.full(len(at_ns), None, dtype=object)
        calls = phase_calls(session)
        if log.device.rank is not None:
            ranks = {n for n, one in enumerate(session.recordings) if one.rank == log.device.rank}
            calls = calls[calls["recording"].isin(ranks)]
        for name in ("data loading", "forward", "backward", OPTIMIZER):  # the last wins
            mine = calls[calls["phase"] == PHASES.index(name)]
            start = mine["ts_ns"].to_numpy(np.int64)
            _mark(traced, at_ns, start, start + mine["dur_ns"].to_numpy(np.int64), name)
        found[untold] = traced[untold]
    return pd.Series(found, dtype=object).where(~pd.isna(found), pd.NA)


def _mark(found: npt.NDArray[np.object_], at_ns: Ints, start: Ints, end: Ints, name: str) -> None:
    whole = union(start, end)
    if len(whole.start_ns) == 0:
        return
    row = np.searchsorted(whole.start_ns, at_ns, side="right") - 1
    found[(row >= 0) & (at_ns <= whole.end_ns[np.maximum(row, 0)])] = name


def steps_at(session: Session, log: MemoryLog, at_ns: Ints) -> pd.Series:
    """Number of the step at each moment; missing outside steps."""
    nothing = pd.Series(pd.array([pd.NA] * len(at_ns), dtype="Int64"))
    if log.device.axis != "time":
        return nothing
    marks = steps(session)
    if log.device.rank is not None:
        marks = marks[marks["rank"] == log.device.rank]
    marks = marks[marks["recording"] == marks["recording"].min()]
    if marks.empty:
        return nothing
    start = marks["ts_ns"].to_numpy(np.int64)
    row = np.searchsorted(start, at_ns, side="right") - 1
    inside = (row >= 0) & (at_ns <= (start + marks["dur_ns"].to_numpy(np.int64))[row])
    number = pd.Series(marks["step"].to_numpy(np.int64)[np.maximum(row, 0)], dtype="Int64")
    return number.where(inside, pd.NA)
