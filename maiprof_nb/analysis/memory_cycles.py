"""Cycles of the memory curve: floor, peak and tooth of each, and whether the floor rises."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._remember import remembered
from maiprof_nb.analysis._theil_sen import Slope, theil_sen
from maiprof_nb.analysis.active_memory import MemoryDevice, MemoryLog, memory_log
from maiprof_nb.analysis.steps import steps
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.session import Session

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MIN_CYCLES = 5  # after the warm-up; fewer floors have no slope worth a confidence interval
WARM_UP = 0.1  # of the cycles, and at least one: caches, optimizer state and workspaces fill
LIKE_ITSELF = 0.4  # autocorrelation of the changes from which they count as repeating
AS_GOOD = 0.8  # of the best autocorrelation: the shortest such lag is the cycle
MOST_KEPT = 0.5  # of the teeth left standing: above it the curve is a ramp, not a sawtooth
EVEN = 0.25  # of the median tooth: median deviation up to which teeth count as alike
REACHES = 0.5  # of the peak: cycles whose median peak is lower are ripples on something larger
RIPPLE = 0.001  # of the peak: lower teeth are small change, not cycles
SWING_LOW, SWING_HIGH = 0.25, 0.75  # of the curve's range: a swing goes from below to above
DENSE = 0.8  # of the cycles in which a leaking line leaves something
LATE = 0.2  # of the cycles at the end, in which it still does
_START_UP = 0.05  # of the states may lie below the floor, while the first memory is taken
_USUAL = 0.95  # of the changes; larger ones count as that large, lest one decide the likeness
_SHORTEST = 4  # changes in a cycle; alloc and free in turn would match at 2 everywhere


@dataclass(frozen=True)
class MemoryCycles:
    """The memory curve of one device, cut into cycles.

    Parameters
    ----------
    log : MemoryLog
        What was cut.
    how : str
        ``steps`` (marked in the recording), ``repetition`` (the shortest lag at which the
        sequence of changes looks like itself, by autocorrelation) or ``swings`` (from the
        lowest quarter of the curve's range into the highest and back).
    likeness : float
        That autocorrelation, 0 to 1; NaN where it was not used.
    cycles : DataFrame
        One row a cycle: ``cycle, step, first_state, end_state, ts_ns, end_ns, floor_bytes,
        peak_bytes, tooth_bytes`` (peak above floor) and ``warm_up``. ``step`` is missing where
        there are none.
    slope : Slope
        Of the floors after the warm-up, in bytes a cycle.
    """

    log: MemoryLog
    how: str
    likeness: float
    cycles: pd.DataFrame
    slope: Slope

    @property
    def steady(self) -> pd.DataFrame:
        """The cycles after the warm-up."""
        return self.cycles[~self.cycles["warm_up"]]

    @property
    def period_ns(self) -> float:
        """Median time from cycle to cycle, ns; NaN where the log has an order but no times."""
        if self.log.device.axis == "order":
            return float("nan")
        return float(self.steady["ts_ns"].diff().median())

    @property
    def tooth_bytes(self) -> int:
        """Median height of a tooth after the warm-up."""
        return int(self.steady["tooth_bytes"].median())

    @property
    def floor_bytes(self) -> int:
        """Median floor after the warm-up."""
        return int(self.steady["floor_bytes"].median())

    @property
    def even(self) -> bool:
        """True if the teeth after the warm-up are alike and reach half of the peak."""
        tooth = self.steady["tooth_bytes"]
        spread = (tooth - tooth.median()).abs().median()
        reached = self.steady["peak_bytes"].median() >= REACHES * self.log.allocated_bytes.max()
        return bool(reached and spread <= EVEN * tooth.median())

    @property
    def rising(self) -> bool:
        """True if the floor rises for sure, and still does in the second half of the log."""
        floors = self.steady["floor_bytes"].to_numpy(np.float64)
        late = floors[len(floors) // 2 :]
        return self.slope.low > 0 and theil_sen(late).value > 0

    @property
    def is_ramp(self) -> bool:
        """True if cycles leave more than half of their teeth standing, up or down."""
        growth = float(self.cycles["floor_bytes"].diff().abs().sum())
        return growth / max(float(self.cycles["tooth_bytes"].sum()), 1.0) > MOST_KEPT

    def piles_up(self, first: int, last: int) -> bool:
        """True if most of the cycles `first` to `last` leave more than half of a tooth standing.

        Memory then does not come down between them: one pass that piles up what it needs later,
        such as activations kept for the backward pass, looks the same as a leak.
        """
        of = self.cycles[self.cycles["cycle"].between(first, last + 1)]
        grown = of["floor_bytes"].diff().iloc[1:].to_numpy(np.float64)
        tooth = np.maximum(of["tooth_bytes"].iloc[:-1].to_numpy(np.float64), 1.0)
        return len(grown) > 0 and float(np.median(grown / tooth)) > MOST_KEPT

    @property
    def rise_bytes(self) -> int:
        """By how much the floor rose from the first to the last cycle after the warm-up."""
        floors = self.steady["floor_bytes"]
        return int(floors.iloc[-1] - floors.iloc[0])


def memory_cycles(session: Session, device: MemoryDevice | None = None) -> MemoryCycles:
    """Cut one device's memory curve into cycles.

    Parameters
    ----------
    session : Session
        What was recorded; a selected window does not cut the log (the findings cut it).
    device : MemoryDevice, optional
        One of `memory_devices`; the first by default.

    Raises
    ------
    NotAnswerableError
        If there are no cycles: too few steps and nothing that repeats, or a ramp, in which a
        cycle leaves more than half of its tooth standing.

    Notes
    -----
    Cycles found by repetition may be layers or micro-batches rather than training steps. A ramp
    of layers whose activations are kept for the backward pass cannot be told from a leak
    without marked steps, and is not taken for one.
    """
    return cycles_of(session, memory_log(session, device))


def cycles_of(session: Session, log: MemoryLog) -> MemoryCycles:
    """As `memory_cycles`, of a log already replayed."""
    numbers, bounds = _by_steps(session, log)
    if len(np.unique(bounds)) - 1 > MIN_CYCLES:
        return _made(log, "steps", float("nan"), _cycles(log, bounds, numbers))
    bounds, likeness = _by_repetition(log)
    repeated = None
    if len(bounds) - 1 > MIN_CYCLES:
        repeated = _made(log, "repetition", likeness, _cycles(log, bounds))
        if repeated.tooth_bytes < RIPPLE * log.allocated_bytes.max():
            repeated = None
        elif repeated.even and not repeated.is_ramp:
            return repeated
    bounds = _by_swings(log)
    if len(bounds) - 1 > MIN_CYCLES:
        return _made(log, "swings", float("nan"), _cycles(log, bounds))
    if repeated is None:
        raise NotAnswerableError(
            f"the memory curve of {log.device.label} has no {MIN_CYCLES} cycles after the warm-up",
            remedy="Record more steps, and mark them with prof.step() in a trace beside the "
            "snapshot",
        )
    if repeated.is_ramp:
        raise NotAnswerableError(
            f"the memory of {log.device.label} repeats its changes but does not come down between "
            "them: a ramp, such as activations kept for the backward pass",
            remedy="Record several steps, and mark them with prof.step() in a trace beside the "
            "snapshot",
        )
    return repeated


def _made(log: MemoryLog, how: str, likeness: float, cycles: pd.DataFrame) -> MemoryCycles:
    floors = cycles.loc[~cycles["warm_up"], "floor_bytes"].to_numpy(np.float64)
    return MemoryCycles(log, how, likeness, cycles, theil_sen(floors))


def survivors(found: MemoryCycles) -> pd.DataFrame:
    """Allocations made after the warm-up that outlived their cycle and the next, by stack.

    Returns
    -------
    DataFrame
        ``stack, label, size_bytes, blocks, bytes_per_cycle`` (from the first cycle that made
        one to the last), ``cycles`` (in how many), ``first_cycle``, ``last_cycle``, ``steady``
        (at least `DENSE` of the cycles between them made one, and the last cycles still do)
        and ``allocation`` (an example), largest growth first. Only what lives at the end of
        the log counts; what the last two cycles made may still be freed.
    """
    steady = found.steady
    lives = found.log.allocations
    edges = np.append(steady["first_state"], steady["end_state"].iloc[-1])
    cycle = np.searchsorted(edges, lives["first_state"], side="right") - 1
    old = (cycle >= 0) & (cycle < len(steady) - 2) & ~lives["before_log"].to_numpy(bool)
    kept = lives.assign(cycle=cycle)[old & lives["end_ns"].isna().to_numpy(bool)]
    by_stack = kept.groupby("stack", dropna=False)
    table = by_stack.agg(
        size_bytes=("size_bytes", "sum"),
        blocks=("size_bytes", "size"),
        cycles=("cycle", "nunique"),
        first_cycle=("cycle", "min"),
        last_cycle=("cycle", "max"),
        allocation=("allocation", "min"),
    ).reset_index()
    label = found.log.stacks.set_index("stack")["label"].astype(object)
    table["stack"] = table["stack"].astype("Int64")
    table["label"] = table["stack"].map(label).astype(object).fillna("no stack recorded")
    spanned = table["last_cycle"] - table["first_cycle"] + 1
    usable = len(steady) - 2
    table["bytes_per_cycle"] = table["size_bytes"] / spanned
    table["steady"] = (
        (table["cycles"] >= DENSE * spanned)
        & (table["cycles"] >= MIN_CYCLES - 2)
        & (table["last_cycle"] >= (1 - LATE) * usable - 1)
    )
    numbers = steady["cycle"].to_numpy(np.int64)
    for column in ("first_cycle", "last_cycle"):
        table[column] = numbers[table[column].to_numpy(np.int64)]
    return table.sort_values("size_bytes", ascending=False, kind="stable", ignore_index=True)


def _by_steps(session: Session, log: MemoryLog) -> tuple[Ints, Ints]:
    """Steps wholly inside the log: their numbers, and the states at which they begin."""
    nothing = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    if log.device.axis != "time":
        return nothing
    marks = steps(session)
    if log.device.kind == "trace":
        marks = marks[marks["recording"] == log.device.recording]
    elif log.device.rank is not None:
        marks = marks[marks["rank"] == log.device.rank]
    marks = marks[marks["recording"] == marks["recording"].min()].sort_values("ts_ns")
    inside = (marks["ts_ns"] >= log.span.start_ns) & (
        marks["ts_ns"] + marks["dur_ns"] <= log.span.end_ns
    )
    marks = marks[inside]
    if marks.empty:
        return nothing
    ends = int((marks["ts_ns"] + marks["dur_ns"]).iloc[-1])
    return marks["step"].to_numpy(np.int64), log.states_at(np.append(marks["ts_ns"], ends))


@remembered
def _by_repetition(log: MemoryLog) -> tuple[Ints, float]:
    """States between cycles, and how alike the cycles are; no states where nothing repeats."""
    changes = np.diff(log.allocated_bytes).astype(np.float64)
    where = np.flatnonzero(changes)
    limit = np.quantile(np.abs(changes[where]), _USUAL) if len(where) else 0.0
    likeness = _autocorrelation(np.clip(changes[where], -limit, limit))
    longest = len(where) // (MIN_CYCLES + 1)
    lags = likeness[_SHORTEST : longest + 1]
    if len(lags) == 0 or lags.max() < LIKE_ITSELF:
        return np.empty(0, dtype=np.int64), float("nan")
    period = int(np.argmax(lags >= AS_GOOD * lags.max())) + _SHORTEST
    after = log.allocated_bytes[where + 1]
    low = _lowest_place(after, period)
    cuts = np.arange(low, len(after), period)
    return where[cuts] + 1, float(likeness[period])


def _lowest_place(level: Ints, period: int) -> int:
    """Where in a cycle the level is least, as a median over the cycles, apart from its trend."""
    rows = level[period : len(level) // period * period].reshape(-1, period)  # not the first
    middle = rows.mean(axis=1)
    trend = (middle[-1] - middle[0]) / max((len(rows) - 1) * period, 1)
    return int((np.median(rows, axis=0) - trend * np.arange(period)).argmin())


def _by_swings(log: MemoryLog) -> Ints:
    """The lowest state before, between and after the curve's stays in its highest quarter."""
    level = log.allocated_bytes
    low, high = float(np.quantile(level, _START_UP)), float(level.max())
    side = np.zeros(len(level), dtype=np.int64)
    side[level >= low + SWING_HIGH * (high - low)] = 1
    side[level <= low + SWING_LOW * (high - low)] = -1
    decided = np.flatnonzero(side)
    turns = np.flatnonzero(np.diff(side[decided])) + 1
    starts = decided[np.concatenate([[0], turns])] if len(decided) else decided
    ends = np.append(starts[1:], len(level))
    lows = [
        start + int(level[start:end].argmin())
        for start, end in zip(starts, ends, strict=True)
        if side[start] < 0
    ]
    return np.array(lows, dtype=np.int64)


def _autocorrelation(values: Floats) -> Floats:
    """Of each lag up to half the length, scaled for the shorter overlap; 1 at lag 0."""
    count = len(values)
    centred = values - values.mean() if count else values
    if count < 2 or not centred.any():
        return np.zeros(0)
    spectrum = np.fft.rfft(centred, 2 * count)
    product = np.fft.irfft(spectrum * np.conj(spectrum))[: count // 2]
    scaled = product * (count / (count - np.arange(len(product))))
    return np.asarray(scaled / scaled[0], dtype=np.float64)


def _cycles(log: MemoryLog, bounds: Ints, numbers: Ints | None = None) -> pd.DataFrame:
    bounds = np.unique(bounds)
    first, end = bounds[:-1], bounds[1:]
    count = len(first)
    inside = log.allocated_bytes[: end[-1]]
    floor = np.minimum.reduceat(inside, first)
    peak = np.maximum.reduceat(inside, first)
    step = pd.array([pd.NA] * count, dtype="Int64")
    if numbers is not None and len(numbers) == count:
        step = pd.array(numbers, dtype="Int64")
    warm_up = max(1, round(WARM_UP * count))
    return pd.DataFrame(
        {
            "cycle": np.arange(count),
            "step": step,
            "first_state": first,
            "end_state": end,
            "ts_ns": log.ts_ns[first],
            "end_ns": log.ts_ns[np.minimum(end, len(log.ts_ns) - 1)],
            "floor_bytes": floor,
            "peak_bytes": peak,
            "tooth_bytes": peak - floor,
            "warm_up": np.arange(count) < warm_up,
        }
    )
