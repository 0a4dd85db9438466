"""The peak of a device's memory, or another moment: what was live, whose, what became of it."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis._intervals import union
from maiprof_nb.analysis._memory_origins import OUTSIDE, lines_of, modules_of
from maiprof_nb.analysis.active_memory import MemoryDevice, MemoryLog, memory_log
from maiprof_nb.analysis.memory_categories import categories_of
from maiprof_nb.analysis.phases import PHASES, phase_calls
from maiprof_nb.analysis.steps import steps
from maiprof_nb.errors import UsageError
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow

__all__ = [
    "FREED",
    "GROUPS",
    "KEPT",
    "OPTIMIZER",
    "OUTSIDE",
    "MemoryPeak",
    "memory_peak",
    "peak_of",
    "state_of",
]

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
GROUPS = ("line", "module", "phase", "step", "category", "stack", "fate")
FREED, KEPT = "freed", "alive at the end"


@dataclass(frozen=True)
class MemoryPeak:
    """The moment at which one device had most allocated, or another that was asked for.

    Parameters
    ----------
    log : MemoryLog
        Where it was found.
    state : int
        The state of the log (of the peak: the first with the most).
    ts_ns : int
        When, in ns of the session (event number where the log has only an order).
    peak_bytes : int
        Allocated then.
    reserved_bytes : int or None
        Held by the allocator then.
    step : int or None
        The step it lies in, where steps were recorded.
    phase : str or None
        The phase it lies in: by the snapshot's ranges, the trace, or the stack of the
        allocation that made it.
    live : DataFrame
        What was live: ``allocation, size_bytes, ts_ns, end_ns, before_log, stack, label, line,
        module, category, confidence, phase, step, fate`` (``freed`` or ``alive at the end``) and
        ``freed_after_ns``, from the moment to the free. ``line`` is the innermost frame of the
        user's own code, ``module`` the innermost ``nn.Module`` as a trace names it, or where its
        ``forward`` was called; ``phase`` and ``step`` are those of the allocation.
    """

    log: MemoryLog
    state: int
    ts_ns: int
    peak_bytes: int
    reserved_bytes: int | None
    step: int | None
    phase: str | None
    live: pd.DataFrame

    @property
    def unnamed_bytes(self) -> int:
        """Allocated at the peak by nothing the source names (traces: before the recording)."""
        return max(self.peak_bytes - int(self.live["size_bytes"].sum()), 0)

    @property
    def kept_bytes(self) -> int:
        """Live at the peak and still at the end of the log."""
        return int(self.live.loc[self.live["fate"] != FREED, "size_bytes"].sum())

    def by(self, group: str) -> pd.DataFrame:
        """Bytes at the moment by ``line, module, phase, step, category, stack`` or ``fate``.

        Returns
        -------
        DataFrame
            The group, ``size_bytes, blocks, freed_bytes`` (freed later in the log) and
            ``freed_after_ns`` (median time from the peak to their free), largest first.
        """
        if group not in GROUPS:
            raise ValueError(f"one of {', '.join(GROUPS)}, not {group}")
        live = self.live.assign(
            freed_bytes=self.live["size_bytes"].where(self.live["fate"] == FREED, 0)
        )
        table = live.groupby(group, dropna=False, observed=True).agg(
            size_bytes=("size_bytes", "sum"),
            blocks=("size_bytes", "size"),
            freed_bytes=("freed_bytes", "sum"),
            freed_after_ns=("freed_after_ns", "median"),
        )
        return table.sort_values("size_bytes", ascending=False, kind="stable").reset_index()


def memory_peak(
    session: Session,
    device: MemoryDevice | None = None,
    *,
    window: TimeWindow | None = None,
    at_ns: int | None = None,
) -> MemoryPeak:
    """The peak of one device's allocated memory, or what was live at another moment.

    Parameters
    ----------
    session : Session
        What was recorded; a selected window does not cut the log.
    device : MemoryDevice, optional
        One of `memory_devices`; the first by default.
    window : TimeWindow, optional
        Where to look for the peak, in ns of the log's axis; all of the log by default.
    at_ns : int, optional
        This moment in place of a peak, after all changes of that very time stamp.

    Raises
    ------
    NotAnswerableError
        If nothing in the session says anything about memory.
    UsageError
        If moment or window lie outside the log.

    Notes
    -----
    Where the log begins late, an earlier and higher peak may be missing.
    """
    log = memory_log(session, device)
    if at_ns is not None:
        _require(log, TimeWindow(at_ns, at_ns))
        return state_of(session, log, int(log.states_at(at_ns)))
    return peak_of(session, log, window)


def peak_of(session: Session, log: MemoryLog, window: TimeWindow | None = None) -> MemoryPeak:
    """As `memory_peak`, of a log already replayed."""
    first, end = 0, len(log.ts_ns)
    if window is not None:
        _require(log, window)
        first = max(int(np.searchsorted(log.ts_ns, window.start_ns, side="left")) - 1, 0)
        end = max(int(np.searchsorted(log.ts_ns, window.end_ns, side="right")), first + 1)
    return state_of(session, log, first + int(log.allocated_bytes[first:end].argmax()))


def _require(log: MemoryLog, window: TimeWindow) -> None:
    if window.end_ns < log.span.start_ns or window.start_ns > log.span.end_ns:
        raise UsageError(
            f"the memory log of {log.device.label} does not cover this time",
            remedy=f"It covers {units.duration(log.span.start_ns)} to "
            f"{units.duration(log.span.end_ns)}",
        )


def state_of(session: Session, log: MemoryLog, state: int) -> MemoryPeak:
    """What was live in one state of a log."""
    at_ns = int(log.ts_ns[state])
    lives = log.allocations
    living = ((lives["first_state"] <= state) & (lives["end_state"] > state)).to_numpy(bool)
    live = lives[living].drop(columns=["first_state", "end_state", "requested_bytes"])
    live = live.reset_index(drop=True)
    kind = categories_of(log)[living]
    label = log.stacks.set_index("stack")["label"].astype(object)
    names = live["stack"].map(label).astype(object)
    at = live["ts_ns"].to_numpy(np.int64)
    old = live["before_log"].to_numpy(bool)
    phase = _phase_of_stacks(log, live["stack"])
    timed = _phases_at(session, log, at)
    live = live.assign(
        label=names.fillna("no stack recorded"),
        line=lines_of(session, log, live),
        module=modules_of(session, log, live),
        category=kind["category"].to_numpy(),
        confidence=kind["confidence"].to_numpy(),
        phase=phase.where(phase.notna() | old, timed),
        step=_steps_at(session, log, at).mask(old),
        fate=np.where(live["end_ns"].isna(), KEPT, FREED),
        freed_after_ns=live["end_ns"] - at_ns,
    )
    step = _steps_at(session, log, np.array([at_ns])).iloc[0]
    return MemoryPeak(
        log=log,
        state=state,
        ts_ns=at_ns,
        peak_bytes=int(log.allocated_bytes[state]),
        reserved_bytes=None if log.reserved_bytes is None else int(log.reserved_bytes[state]),
        step=None if pd.isna(step) else int(step),
        phase=_phase_of_peak(session, log, state),
        live=live.sort_values("size_bytes", ascending=False, kind="stable", ignore_index=True),
    )


def _phase_of_peak(session: Session, log: MemoryLog, state: int) -> str | None:
    timed = _phases_at(session, log, log.ts_ns[state : state + 1]).iloc[0]
    if not pd.isna(timed):
        return str(timed)
    made = log.allocations[(log.allocations["first_state"] == state) & (state > 0)]
    told = _phase_of_stacks(log, made["stack"]).dropna()
    return str(told.iloc[0]) if len(told) else None


def _phase_of_stacks(log: MemoryLog, stack: pd.Series) -> pd.Series:
    texts = log.stacks["frames"].astype(object)
    found = pd.Series(pd.NA, index=log.stacks["stack"].to_numpy(np.int64), dtype=object)
    for name, pattern in reversed(_STACK_PHASES):
        found[texts.str.contains(pattern).to_numpy(bool)] = name
    mapped = stack.map(found) if len(found) else pd.Series(pd.NA, index=stack.index)
    return mapped.astype(object)


def _phases_at(session: Session, log: MemoryLog, at_ns: Ints) -> pd.Series:
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


def _steps_at(session: Session, log: MemoryLog, at_ns: Ints) -> pd.Series:
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
