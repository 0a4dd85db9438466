"""How the memory taken from a device was cut into blocks at any moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._allocator_history import AllocatorHistory, Ints, allocator_history
from maiprof_nb.analysis._memory_log import MemoryDevice
from maiprof_nb.errors import NotAnswerableError, UsageError
from maiprof_nb.session import Session

__all__ = [
    "ALLOCATED",
    "COLUMNS",
    "INACTIVE",
    "PENDING_FREE",
    "AllocatorHistory",
    "FreeBlocks",
    "Pieces",
    "allocation_rows",
    "allocator_history",
    "allocator_state",
    "free_blocks",
    "free_of",
    "gaps",
    "living_segments",
    "pieces_of",
    "state_of",
]

ALLOCATED, PENDING_FREE, INACTIVE = "allocated", "pending_free", "inactive"
COLUMNS = (
    "segment_address", "segment_bytes", "stream", "pool", "pool_id", "expandable", "address",
    "size_bytes", "requested_bytes", "state", "stack",
)  # fmt: skip


def allocator_state(
    session: Session, ts_ns: int, device: MemoryDevice | None = None
) -> pd.DataFrame:
    """Every segment and its blocks at one moment, in address order.

    Parameters
    ----------
    session : Session
        What was recorded.
    ts_ns : int
        The moment, in ns of the session (the event's number for a log without times); after
        all events of that very time stamp.
    device : MemoryDevice, optional
        One of `memory_devices` that is a snapshot's; the first of them by default.

    Returns
    -------
    DataFrame
        One row a block: ``segment_address, segment_bytes, stream, pool, pool_id, expandable,
        address, size_bytes, requested_bytes, state, stack``. ``state`` is ``allocated``,
        ``pending_free`` (its free waits for a stream) or ``inactive``; inactive blocks have
        neither requested bytes nor a stack. Sizes are in bytes. The blocks of a segment tile
        it. Parts of an expandable segment that are not mapped are no rows.

    Raises
    ------
    NotAnswerableError
        If there is no snapshot, or its log does not fit its segments.
    UsageError
        If the moment lies outside the log.

    Notes
    -----
    Sizes of large blocks that were made and freed before anything lay behind them within 1 MiB
    are as rounded by the allocator's rules, the least they can have had. The pool of a segment
    that was gone at the end is taken to be the default one.
    """
    history = allocator_history(session, device)
    first, last = int(history.ts_ns[0]), int(history.ts_ns[-1])
    if history.last_state and not first <= ts_ns <= last:
        raise UsageError(
            f"{ts_ns} ns lies outside the memory log", remedy=f"It covers {first} to {last} ns"
        )
    return state_of(history, history.state_at(ts_ns))


def state_of(history: AllocatorHistory, state: int) -> pd.DataFrame:
    """As `allocator_state`, for state ``k`` of a history: after ``k`` events of its log."""
    cut = pieces_of(history, state)
    blocks = history.blocks.take(np.maximum(cut.block, 0)) if len(history.blocks) else None
    used = cut.block >= 0
    kind = np.where(used, np.where(cut.pending, PENDING_FREE, ALLOCATED), INACTIVE)
    found: dict[str, Any] = {
        "segment_address": cut.segments["address"].to_numpy(np.int64)[cut.segment],
        "segment_bytes": cut.segments["size_bytes"].to_numpy(np.int64)[cut.segment],
        "address": cut.address,
        "size_bytes": cut.size_bytes,
        "state": kind.astype(object),
    }
    for column in ("requested_bytes", "stack"):
        values = pd.array([pd.NA] * len(used) if blocks is None else blocks[column], dtype="Int64")
        values[~used] = pd.NA
        found[column] = values
    for column in ("stream", "pool", "pool_id", "expandable"):
        found[column] = cut.segments[column].to_numpy()[cut.segment]
    return pd.DataFrame({column: found[column] for column in COLUMNS})


@dataclass(frozen=True, slots=True)
class Pieces:
    """One state as arrays: every block in address order, also the inactive ones.

    Parameters
    ----------
    segments : DataFrame
        The segments in address order: ``address, size_bytes, stream, pool, pool_id, expandable``.
    address, size_bytes : array of int64
        Of each block.
    segment : array of int64
        Its segment's row.
    block : array of int64
        Its row of ``history.blocks``; -1 for what is inactive.
    pending : array of bool
        Its free waits for a stream.
    """

    segments: pd.DataFrame
    address: Ints
    size_bytes: Ints
    segment: Ints
    block: Ints
    pending: npt.NDArray[np.bool_]


def pieces_of(history: AllocatorHistory, state: int) -> Pieces:
    """What `state_of` tells, without names and in less time.

    Raises
    ------
    NotAnswerableError
        If the log does not fit its segments.
    """
    segments = living_segments(history, state)
    begin = segments["address"].to_numpy(np.int64)
    end = begin + segments["size_bytes"].to_numpy(np.int64)
    used = np.flatnonzero(_lives_at(history.blocks, state))
    start = history.blocks["address"].to_numpy(np.int64)[used]
    stop = start + history.blocks["size_bytes"].to_numpy(np.int64)[used]
    gap_from, gap_to = gaps(begin, end, start, stop)
    hole = gap_to > gap_from
    address = np.concatenate([start, gap_from[hole]])
    order = np.argsort(address, kind="stable")
    address = address[order]
    size = np.concatenate([stop - start, (gap_to - gap_from)[hole]])[order]
    block = np.concatenate([used, np.full(int(hole.sum()), -1, np.int64)])[order]
    waits = np.zeros(len(block), dtype=bool)
    pending = history.blocks["pending_state"].to_numpy(np.int64)[used] <= state
    waits[block >= 0] = pending[np.argsort(start, kind="stable")]
    return Pieces(
        segments=segments,
        address=address,
        size_bytes=size,
        segment=np.searchsorted(begin, address, side="right") - 1,
        block=block,
        pending=waits,
    )


def living_segments(history: AllocatorHistory, state: int) -> pd.DataFrame:
    """The segments of one state in address order; mapped steps that touch are one segment."""
    found = _at(history.segments, state)
    if not found["expandable"].any():
        return found
    end = found["address"] + found["size_bytes"]
    kind = ["stream", "pool", "pool_id", "expandable"]
    new = (found[kind] != found[kind].shift()).any(axis=1) | found["address"].ne(end.shift())
    new |= ~found["expandable"]
    named = dict.fromkeys(["address", *kind], "first") | {"size_bytes": "sum"}
    return found.groupby(new.cumsum()).agg(named).reset_index(drop=True)


@dataclass(frozen=True, slots=True)
class FreeBlocks:
    """The inactive blocks of one state in address order, an array each."""

    address: Ints
    size_bytes: Ints
    segment_address: Ints
    segment_bytes: Ints
    small: npt.NDArray[np.bool_]
    expandable: npt.NDArray[np.bool_]


def free_blocks(history: AllocatorHistory, state: int) -> FreeBlocks:
    """The inactive rows of `state_of`, in less time."""
    segments = history.segments
    living = np.flatnonzero(_lives_at(segments, state))
    if segments["expandable"].to_numpy(bool)[living].any():
        segments = living_segments(history, state)
        living = np.arange(len(segments))
    begin, size = (segments[name].to_numpy(np.int64)[living] for name in ("address", "size_bytes"))
    used = np.flatnonzero(_lives_at(history.blocks, state))
    start = history.blocks["address"].to_numpy(np.int64)[used]
    stop = start + history.blocks["size_bytes"].to_numpy(np.int64)[used]
    gap_from, gap_to = gaps(begin, begin + size, start, stop)
    hole = np.flatnonzero(gap_to > gap_from)
    segment = np.searchsorted(begin, gap_from[hole], side="right") - 1
    row = living[segment]
    return FreeBlocks(
        address=gap_from[hole],
        size_bytes=(gap_to - gap_from)[hole],
        segment_address=begin[segment],
        segment_bytes=size[segment],
        small=segments["pool"].to_numpy(object)[row] == "small",
        expandable=segments["expandable"].to_numpy(bool)[row],
    )


def free_of(cut: Pieces) -> FreeBlocks:
    """As `free_blocks`, of a state that is known as pieces."""
    hole = np.flatnonzero(cut.block < 0)
    segment = cut.segment[hole]
    return FreeBlocks(
        address=cut.address[hole],
        size_bytes=cut.size_bytes[hole],
        segment_address=cut.segments["address"].to_numpy(np.int64)[segment],
        segment_bytes=cut.segments["size_bytes"].to_numpy(np.int64)[segment],
        small=cut.segments["pool"].to_numpy(object)[segment] == "small",
        expandable=cut.segments["expandable"].to_numpy(bool)[segment],
    )


def gaps(begin: Ints, end: Ints, start: Ints, stop: Ints) -> tuple[Ints, Ints]:
    """Between segments' begins and ends, what the blocks leave: from and to.

    Every stretch that is no block's runs from a segment's begin or a block's end to a block's
    start or a segment's end; sorted, the two lists pair off.

    Raises
    ------
    NotAnswerableError
        If blocks lie outside of segments or overlap.
    """
    gap_from = np.sort(np.concatenate([begin, stop]))
    gap_to = np.sort(np.concatenate([start, end]))
    owner = np.searchsorted(begin, start, side="right") - 1
    outside = (owner < 0) | (stop > end[owner]) if len(end) else np.ones(len(start), bool)
    if outside.any() or (gap_to < gap_from).any():
        raise NotAnswerableError(
            "the log does not fit the segments: blocks lie outside of them or overlap",
            remedy="Record with all actions, and dump right after what is to be seen",
        )
    return gap_from, gap_to


def _lives_at(lives: pd.DataFrame, state: int) -> npt.NDArray[np.bool_]:
    first, end = lives["first_state"].to_numpy(), lives["end_state"].to_numpy()
    return np.asarray((first <= state) & (state < end), dtype=bool)


def _at(lives: pd.DataFrame, state: int) -> pd.DataFrame:
    return lives[_lives_at(lives, state)].reset_index(drop=True)


def allocation_rows(session: Session, history: AllocatorHistory) -> Ints:
    """For each row of ``history.blocks`` its id in the recording's `allocations`; -1 if none.

    A block is the allocation that began at its address at its time; of several that began
    there at the very same time the first is the first.
    """
    recording = session.recordings[history.device.recording]
    offset_ns = session.placements[history.device.recording].offset_ns
    table = recording.table("allocations")
    table = table[table["device"].eq(history.device.device).to_numpy()]
    old = history.blocks["first_state"].eq(0).to_numpy(bool)
    since = history.ts_ns[history.blocks["first_state"].to_numpy(np.int64)]
    mine = _beginnings(history.blocks["address"], since, old)
    theirs = _beginnings(
        table["address"], table["ts_ns"].to_numpy(np.int64) + offset_ns, table["before_log"]
    )
    theirs["allocation"] = table["allocation"].to_numpy(np.int64)
    found = mine.merge(theirs, how="left", on=list(mine.columns))["allocation"]
    return found.fillna(-1).to_numpy(np.int64)


def _beginnings(address: Any, ts_ns: Ints, old: Any) -> pd.DataFrame:
    """What tells lives apart by where and when they began."""
    before = np.asarray(old, dtype=bool)
    found = pd.DataFrame(
        {
            "address": np.asarray(address, dtype=np.int64),
            "ts_ns": np.where(before, 0, ts_ns),
            "old": before,
        }
    )
    found["turn"] = found.groupby(["address", "ts_ns", "old"]).cumcount()
    return found
