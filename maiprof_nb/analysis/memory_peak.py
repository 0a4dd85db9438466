"""The peak of a device's memory, or another moment: what was live, whose, what became of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis._memory_origins import OUTSIDE, lines_of
from maiprof_nb.analysis._memory_phases import OPTIMIZER, phases_at, phases_of_stacks, steps_at
from maiprof_nb.analysis.active_memory import MemoryDevice, MemoryLog, memory_log
from maiprof_nb.analysis.allocation_makers import makers_of
from maiprof_nb.analysis.memory_categories import categories_of
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
        user's own code; ``module``, ``phase`` and ``step`` are those of `allocation_makers`.
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
    kind, maker = categories_of(log)[living], makers_of(session, log)[living]
    label = log.stacks.set_index("stack")["label"].astype(object)
    names = live["stack"].map(label).astype(object)
    live = live.assign(
        label=names.fillna("no stack recorded"),
        line=lines_of(session, log, live),
        module=maker["module"].fillna(OUTSIDE).to_numpy(),
        category=kind["category"].to_numpy(),
        confidence=kind["confidence"].to_numpy(),
        phase=maker["phase"].to_numpy(),
        step=maker["step"].array,
        fate=np.where(live["end_ns"].isna(), KEPT, FREED),
        freed_after_ns=live["end_ns"] - at_ns,
    )
    step = steps_at(session, log, np.array([at_ns])).iloc[0]
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
    timed = phases_at(session, log, log.ts_ns[state : state + 1]).iloc[0]
    if not pd.isna(timed):
        return str(timed)
    made = log.allocations[(log.allocations["first_state"] == state) & (state > 0)]
    told = phases_of_stacks(log, made["stack"]).dropna()
    return str(told.iloc[0]) if len(told) else None
