"""How much memory is in use over time, and whose it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._chosen_bands import chosen_bands
from maiprof_nb.analysis._memory_log import (
    HOST,
    MemoryDevice,
    MemoryLog,
    memory_devices,
    memory_log,
)
from maiprof_nb.analysis._merged_bands import MergedBands, merged_bands
from maiprof_nb.errors import UsageError
from maiprof_nb.session import Session
from maiprof_nb.timebase import NS_PER_US, TimeWindow

__all__ = [
    "HOST",
    "MemoryDevice",
    "MemoryLog",
    "MemoryPicture",
    "live_at",
    "live_in",
    "memory_curve",
    "memory_devices",
    "memory_log",
    "memory_picture",
    "picture_of",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_MAX_MERGED = 24  # bands of allocations too small to be drawn one by one


@dataclass(frozen=True)
class MemoryPicture:
    """What a memory timeline of so many pixels shows of one window; bounded in size.

    A column stands for the moment within it at which most was allocated, so a peak is never
    lost between two columns. Times are microseconds from the start of `window`.

    Parameters
    ----------
    window : TimeWindow
        What is shown, in ns of the session.
    sample_us : array of float64
        For each column, the moment it stands for; NaN outside the log.
    allocated_bytes, rest_bytes, reserved_bytes : array of float64
        For each column: all that is allocated; the part of it no band stands for, merged or
        not; what the allocator holds of the device (NaN where the source does not say). NaN
        outside the log.
    start_us, end_us : array of float64
        First and last moment of each band's allocation, also beyond the window; ``end_us`` is
        infinite for what lives at the end.
    first_column, end_column : array of uint16
        Columns at whose moment the band lives, ``first_column <= c < end_column``.
    size_bytes : array of float64
        Rounded size of each band.
    stack, allocation : array of int32
        Row ids; stack -1 = none was recorded. Bands are in order of allocation, oldest first.
    before_log : array of uint8
        1 for what was allocated before the log began.
    position : array of int64
        Row of each band in the log's ``allocations``.
    merged : MergedBands
        What is too small to be drawn one by one, by group.
    peak_us, peak_bytes : float
        The most that was allocated in the window, and when; NaN where nothing was recorded.
    hidden, hidden_bytes : int
        Allocations living in the window that no band stands for, merged or not, and their
        sizes added up: they live between two columns, or their group is too small.
    """

    window: TimeWindow
    sample_us: Floats
    allocated_bytes: Floats
    rest_bytes: Floats
    reserved_bytes: Floats
    start_us: Floats
    end_us: Floats
    first_column: npt.NDArray[np.uint16]
    end_column: npt.NDArray[np.uint16]
    size_bytes: Floats
    stack: npt.NDArray[np.int32]
    allocation: npt.NDArray[np.int32]
    before_log: npt.NDArray[np.uint8]
    position: Ints
    merged: MergedBands
    peak_us: float
    peak_bytes: float
    hidden: int
    hidden_bytes: int


def memory_curve(
    session: Session, window: TimeWindow | None = None, device: MemoryDevice | None = None
) -> pd.DataFrame:
    """Allocated, requested and reserved bytes over time, as a step function.

    Parameters
    ----------
    session : Session
        What was recorded.
    window : TimeWindow, optional
        Only this time, in ns of the session; the whole log by default.
    device : MemoryDevice, optional
        One of `memory_devices`; the first by default.

    Returns
    -------
    DataFrame
        ``ts_ns, allocated_bytes, requested_bytes, reserved_bytes``: each row holds until the
        next. The first row is the state at the start of the window, with what was allocated
        before the log began. Rows with the same ``ts_ns`` are in the log's order, so the
        maximum of a column is the peak. Missing = the source does not say.

    Raises
    ------
    NotAnswerableError
        If nothing in the session says anything about memory.

    Notes
    -----
    Allocated counts blocks from their alloc to their *completed* free, as rounded by the
    allocator. It is not what ``nvidia-smi`` shows: that includes the CUDA context and all
    that is reserved.
    """
    log = memory_log(session, device)
    first, last = 0, len(log.ts_ns)
    shown = log.span if window is None else window.intersect(log.span)
    if window is not None:
        if window.end_ns < log.span.start_ns or window.start_ns > log.span.end_ns:
            last = 0
        else:
            first = int(np.maximum(np.searchsorted(log.ts_ns, shown.start_ns, "right") - 1, 0))
            last = int(np.searchsorted(log.ts_ns, window.end_ns, side="left"))
            last = max(last, first + 1)
    last = max(first, last)
    rows = slice(first, last)
    return pd.DataFrame(
        {
            "ts_ns": np.maximum(log.ts_ns[rows], shown.start_ns),
            "allocated_bytes": log.allocated_bytes[rows],
            "requested_bytes": _maybe(log.requested_bytes, rows, last - first),
            "reserved_bytes": _maybe(log.reserved_bytes, rows, last - first),
        }
    )


def live_at(session: Session, ts_ns: int, device: MemoryDevice | None = None) -> pd.DataFrame:
    """Who holds the memory at one moment, by stack.

    Parameters
    ----------
    session : Session
        What was recorded.
    ts_ns : int
        The moment, in ns of the session; after all changes of that very time stamp.
    device : MemoryDevice, optional
        One of `memory_devices`; the first by default.

    Returns
    -------
    DataFrame
        ``stack, label, size_bytes, blocks``, largest first. ``stack`` is missing for blocks
        without a recorded stack. ``blocks`` is missing in the row for bytes that the source
        counts without saying which blocks they are (traces: allocated before recording).

    Raises
    ------
    NotAnswerableError
        If nothing in the session says anything about memory.
    UsageError
        If the moment lies outside the log.
    """
    log = memory_log(session, device)
    if not log.span.start_ns <= ts_ns <= log.span.end_ns:
        raise UsageError(
            f"{ts_ns} ns lies outside the memory log",
            remedy=f"It covers {log.span.start_ns} to {log.span.end_ns} ns",
        )
    return live_in(log, int(log.states_at(ts_ns)))


def live_in(log: MemoryLog, state: int) -> pd.DataFrame:
    """Who holds the memory in one state of a log; columns as `live_at`."""
    lives = log.allocations
    living = lives[(lives["first_state"] <= state) & (lives["end_state"] > state)]
    grouped = living.groupby("stack", dropna=False)["size_bytes"].agg(["sum", "count"])
    label = log.stacks.set_index("stack")["label"].astype(object)
    stacks = grouped.index.to_series()
    columns = {
        "stack": stacks.tolist(),
        "label": stacks.map(label).astype(object).fillna("no stack recorded").tolist(),
        "size_bytes": grouped["sum"].tolist(),
        "blocks": grouped["count"].tolist(),
    }
    unnamed = int(log.allocated_bytes[state]) - sum(columns["size_bytes"])
    if unnamed > 0:
        row = (pd.NA, "allocated before the recording", unnamed, pd.NA)
        for name, value in zip(columns, row, strict=True):
            columns[name].append(value)
    found = pd.DataFrame(columns).astype(
        {"stack": "Int64", "label": object, "size_bytes": "int64", "blocks": "Int64"}
    )
    return found.sort_values("size_bytes", ascending=False, kind="stable", ignore_index=True)


def memory_picture(
    session: Session,
    window: TimeWindow | None = None,
    *,
    columns: int = 1000,
    max_bands: int = 3000,
    device: MemoryDevice | None = None,
) -> MemoryPicture:
    """What a memory timeline `columns` pixels wide shows of `window`.

    Parameters
    ----------
    session : Session
        What was recorded.
    window : TimeWindow, optional
        Time shown, in ns of the session; the session's window by default.
    columns, max_bands : int
        Bounds of the picture. Bands are the allocations with most bytes x time in the window,
        and the largest; the others are merged by stack.
    device : MemoryDevice, optional
        One of `memory_devices`; the first by default.

    Raises
    ------
    NotAnswerableError
        If nothing in the session says anything about memory.
    """
    log = memory_log(session, device)
    return picture_of(log, window or session.window, columns=columns, max_bands=max_bands)


def picture_of(
    log: MemoryLog,
    window: TimeWindow,
    *,
    columns: int = 1000,
    max_bands: int = 3000,
    rows: int | None = None,
    groups: Ints | None = None,
) -> MemoryPicture:
    """As `memory_picture`, of a log already replayed (replay once, zoom often).

    Parameters
    ----------
    rows : int, optional
        Height of the picture in pixels: what is lower than one is merged, too.
    groups : array of int64, optional
        For each row of the log's ``allocations`` the group it is merged with; its stack by
        default.
    """
    if not 1 <= columns <= np.iinfo(np.uint16).max:
        raise UsageError(f"a picture cannot have {columns} columns", remedy="1 to 65 535")
    states, at_ns = _states_of_columns(log, window, columns)
    inside = np.flatnonzero(states >= 0)
    allocated = np.full(columns, np.nan)
    allocated[inside] = log.allocated_bytes[states[inside]]
    reserved = np.full(columns, np.nan)
    if log.reserved_bytes is not None:
        reserved[inside] = log.reserved_bytes[states[inside]]
    highest = np.fmax(allocated, reserved)[inside].max(initial=0.0)
    least = float(highest) / rows if rows else 0.0
    chosen = chosen_bands(log, window, states, inside, max_bands, least)
    if groups is None:
        groups = log.allocations["stack"].to_numpy(np.int64, na_value=-1)
    merged = merged_bands(
        *chosen.merged, groups[chosen.small], columns=columns, least=least, most=_MAX_MERGED
    )
    lives, (first, end, size) = log.allocations.iloc[chosen.large], chosen.drawn
    drawn = np.bincount(first, size, columns + 1) - np.bincount(end, size, columns + 1)
    named = np.cumsum(drawn)[:columns] + merged.bytes_.sum(axis=0)
    top = int(np.nanargmax(allocated)) if len(inside) else -1
    sample_us = np.where(states >= 0, (at_ns - window.start_ns) / NS_PER_US, np.nan)
    return MemoryPicture(
        window=window,
        sample_us=sample_us,
        allocated_bytes=allocated,
        rest_bytes=np.where(states >= 0, np.maximum(allocated - named, 0), np.nan),
        reserved_bytes=reserved,
        start_us=_us(lives["ts_ns"], window),
        end_us=_us(lives["end_ns"], window),
        first_column=first.astype(np.uint16),
        end_column=end.astype(np.uint16),
        size_bytes=size,
        stack=lives["stack"].to_numpy(np.int32, na_value=-1),
        allocation=lives["allocation"].to_numpy(np.int32),
        before_log=lives["before_log"].to_numpy(np.uint8),
        position=chosen.large,
        merged=merged,
        peak_us=float(sample_us[top]) if top >= 0 else np.nan,
        peak_bytes=float(allocated[top]) if top >= 0 else np.nan,
        hidden=chosen.brief + int(merged.left.sum()),
        hidden_bytes=chosen.brief_bytes + int(chosen.merged[2][merged.left].sum()),
    )


def _states_of_columns(log: MemoryLog, window: TimeWindow, columns: int) -> tuple[Ints, Ints]:
    """For each column the state with most allocated (-1 outside the log), and its moment."""
    if window.dur_ns == 0:  # one moment
        covered = log.span.start_ns <= window.start_ns <= log.span.end_ns
        state = log.states_at(window.start_ns) if covered else -1
        return np.full(columns, state), np.full(columns, window.start_ns)
    share = np.arange(columns + 1) / columns
    edges = window.start_ns + np.round(share * window.dur_ns).astype(np.int64)
    begins, ends = edges[:-1], edges[1:]
    entry = np.searchsorted(log.ts_ns, begins, side="left")
    known = np.minimum(entry, len(log.ts_ns) - 1)
    entry = np.where(log.ts_ns[known] == begins, known, entry - 1)  # in force as it begins
    after = np.searchsorted(log.ts_ns, ends, side="left")
    after[-1] = np.searchsorted(log.ts_ns, window.end_ns, side="right")
    entry = np.maximum(entry, 0)
    best = entry.copy()
    several = np.flatnonzero(after > entry + 1)
    if len(several):
        # highest in entry..after-1: one reduction over alternating wanted and unwanted runs
        bounds = np.stack([entry[several], after[several]], axis=1).ravel()
        padded = np.append(log.allocated_bytes, np.iinfo(np.int64).min)
        highest = np.maximum.reduceat(padded, bounds)[::2]
        best[several] = _first_with(log.allocated_bytes, highest, entry[several], after[several])
    seen = (ends > log.span.start_ns) & (begins <= log.span.end_ns)
    states = np.where(seen, best, -1)
    return states, np.maximum(log.ts_ns[best], np.maximum(begins, log.span.start_ns))


def _first_with(values: Ints, wanted: Ints, first: Ints, end: Ints) -> Ints:
    """Within each range ``first[i]..end[i]-1`` the first position whose value is `wanted[i]`."""
    length = end - first
    owner = np.repeat(np.arange(len(first)), length)
    position = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
    position = position + first[owner]
    hit = np.flatnonzero(values[position] == wanted[owner])
    _, earliest = np.unique(owner[hit], return_index=True)
    return np.asarray(position[hit[earliest]], dtype=np.int64)


def _us(times: pd.Series[Any], window: TimeWindow) -> Floats:
    return (times - window.start_ns).to_numpy(np.float64, na_value=np.inf) / NS_PER_US


def _maybe(values: Ints | None, rows: slice, length: int) -> Any:
    known = [pd.NA] * length if values is None else values[rows]
    return pd.array(known, dtype="Int64")
