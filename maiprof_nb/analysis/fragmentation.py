"""Memory that is reserved and not usable, over time, and who is in its way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.allocator import (
    LARGE_SEGMENT,
    SMALL_REQUEST_LIMIT,
    SMALL_SEGMENT,
    largest_request,
)
from maiprof_nb.analysis._allocator_replay import allocated_in_states, reserved_in_states
from maiprof_nb.analysis._memory_log import MemoryDevice
from maiprof_nb.analysis.allocator_state import (
    AllocatorHistory,
    FreeBlocks,
    Pieces,
    allocator_history,
    allocator_state,
    free_blocks,
    free_of,
)
from maiprof_nb.errors import UsageError
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow

_NO_STACK = -1


def fragmentation(
    session: Session,
    device: MemoryDevice | None = None,
    *,
    points: int = 300,
    device_bytes: int | None = None,
    window: TimeWindow | None = None,
) -> pd.DataFrame:
    """How much of what is reserved lies idle, and in how large pieces, over time.

    Parameters
    ----------
    session : Session
        What was recorded.
    device : MemoryDevice, optional
        One of `memory_devices` that is a snapshot's; the first of them by default.
    points : int
        At most so many moments: half of them evenly over the log's events, half those that last
        longest between these, as each is drawn until the next. The first and last, and those
        with most reserved, most allocated and most unused, are always among them.
    device_bytes : int, optional
        What the device can give PyTorch in all; without it nothing beyond what is reserved
        counts as available, so that ``fits_after_release_bytes`` is a lower bound.
    window : TimeWindow, optional
        Only this time, in ns of the session (event numbers for a log without times), with the
        state in force at its start; the whole log by default.

    Returns
    -------
    DataFrame
        ``state, ts_ns, reserved_bytes, allocated_bytes, unused_bytes, largest_free_bytes,
        fragmentation, fits_bytes, fits_after_release_bytes``. ``state`` counts the events of
        the log before the moment. Allocated includes blocks that wait to be freed.
        ``fragmentation`` = 1 - largest free block / all free blocks; missing where none is
        free. ``fits_bytes``: the largest single request that a free block holds, on the stream
        and in the pool of that block. ``fits_after_release_bytes``: the same once all wholly
        free segments went back to the device, or without that, whichever is more.

    Raises
    ------
    NotAnswerableError
        If there is no snapshot, or its log does not fit its segments.
    UsageError
        If fewer than 5 points are asked for.
    """
    return fragmentation_of(
        allocator_history(session, device), points=points, device_bytes=device_bytes, window=window
    )


def fragmentation_of(
    history: AllocatorHistory,
    *,
    points: int = 300,
    device_bytes: int | None = None,
    window: TimeWindow | None = None,
) -> pd.DataFrame:
    """As `fragmentation`, of a history already followed."""
    if points < 5:
        raise UsageError(f"{points} points are too few", remedy="Ask for at least 5")
    reserved, allocated = reserved_in_states(history), allocated_in_states(history)
    first, last = 0, history.last_state
    if window is not None:
        first = history.state_at(window.start_ns)
        last = max(history.state_at(window.end_ns), first)
    curves = (reserved, allocated, reserved - allocated)
    peaks = [curve[first : last + 1].argmax() + first for curve in curves]
    always = [first, last, *peaks]
    states = _shown_states(history, np.array(always, dtype=np.int64), points)
    rows = [
        _served(free_blocks(history, state), int(reserved[state]), device_bytes)
        for state in states.tolist()
    ]
    largest, fits, after = np.array(rows, dtype=np.int64).T
    unused = reserved[states] - allocated[states]
    share = np.divide(largest, unused, out=np.full(len(states), np.nan), where=unused > 0)
    return pd.DataFrame(
        {
            "state": states,
            "ts_ns": history.ts_ns[states],
            "reserved_bytes": reserved[states],
            "allocated_bytes": allocated[states],
            "unused_bytes": unused,
            "largest_free_bytes": largest,
            "fragmentation": 1 - share,
            "fits_bytes": fits,
            "fits_after_release_bytes": after,
        }
    )


def _shown_states(
    history: AllocatorHistory, always: npt.NDArray[np.int64], points: int
) -> npt.NDArray[np.int64]:
    """At most `points` states from the first to the last of `always`."""
    first, last = int(always.min()), int(always.max())
    if last - first < points:
        return np.arange(first, last + 1)
    evenly = np.linspace(first, last, (points - len(always)) // 2 + 2).astype(np.int64)
    chosen = np.unique(np.concatenate([evenly, always]))
    dur_ns = np.diff(history.ts_ns[first : last + 1])
    group = np.searchsorted(chosen, np.arange(first, last), side="right")
    order = np.lexsort((-dur_ns, group))
    longest = order[np.flatnonzero(np.diff(group[order], prepend=-1))]
    longest = longest[np.argsort(-dur_ns[longest], kind="stable")][: points - len(chosen)]
    return np.union1d(chosen, longest + first)


def holes(session: Session, ts_ns: int, device: MemoryDevice | None = None) -> pd.DataFrame:
    """Which stacks keep free memory from going back to the device, at one moment.

    Parameters
    ----------
    session : Session
        What was recorded.
    ts_ns : int
        The moment, in ns of the session.
    device : MemoryDevice, optional
        One of `memory_devices` that is a snapshot's; the first of them by default.

    Returns
    -------
    DataFrame
        ``stack, label, held_bytes, blocks, block_bytes``, most held first. A hole counts half
        for each of the blocks beside it, wholly if there is one only; so ``held_bytes`` add up
        to all free bytes of segments that are in part in use. Segments that are wholly free
        are held by nobody and not counted. ``blocks`` and ``block_bytes`` are the blocks
        beside holes. ``stack`` is missing for blocks without a recorded stack.

    Raises
    ------
    NotAnswerableError
        If there is no snapshot, or its log does not fit its segments.
    UsageError
        If the moment lies outside the log.
    """
    history = allocator_history(session, device)
    labels = session.recordings[history.device.recording].table("stacks")
    return holes_in(allocator_state(session, ts_ns, device), labels)


def holes_in(state: pd.DataFrame, stacks: pd.DataFrame) -> pd.DataFrame:
    """As `holes`, of a state and the names of its stacks."""
    segment = state["segment_address"].to_numpy(np.int64)
    size = state["size_bytes"].to_numpy(np.int64)
    hole = state["state"].eq("inactive").to_numpy(bool)
    same = np.diff(segment, prepend=-1) == 0 if len(segment) else hole
    before = same
    after = np.concatenate([same[1:], [False]])[: len(segment)]
    sides = before.astype(np.int64) + after
    part = np.where(hole & (sides > 0), size / np.maximum(sides, 1), 0.0)
    # neighbouring holes are merged, so whatever lies beside a hole is in use
    held = np.zeros(len(segment))
    held[:-1] += np.where(after[:-1], part[1:], 0.0)
    held[1:] += np.where(before[1:], part[:-1], 0.0)
    rows = np.flatnonzero(held > 0)
    beside = pd.DataFrame(
        {
            "stack": state["stack"].iloc[rows].fillna(_NO_STACK).to_numpy(np.int64),
            "held_bytes": held[rows],
            "block_bytes": size[rows],
        }
    )
    found = beside.groupby("stack").agg(
        held_bytes=("held_bytes", "sum"),
        blocks=("block_bytes", "size"),
        block_bytes=("block_bytes", "sum"),
    )
    found = found.sort_values("held_bytes", ascending=False, kind="stable").reset_index()
    label = stacks.set_index("stack")["label"].astype(object)
    found.insert(1, "label", found["stack"].map(label).astype(object).fillna("no stack recorded"))
    found["held_bytes"] = found["held_bytes"].astype("int64")
    found["stack"] = found["stack"].astype("Int64").mask(found["stack"].eq(_NO_STACK))
    return found


@dataclass(frozen=True, slots=True)
class Room:
    """What is free of one state's segments, and what it serves. All in bytes but the counts.

    Parameters
    ----------
    segments, reserved_bytes, allocated_bytes : int
        Taken from the device; of it in blocks that are in use or wait to be freed.
    free_segments, returnable_bytes : int
        Segments without any block in use; what ``empty_cache`` would give back of all segments.
    holes, stranded_bytes : int
        Free blocks of segments that are in part in use, and their sizes less what goes back.
    largest_free_bytes, fits_bytes : int
        The largest free block; the largest single request that one of them holds.
    fits_after_release_bytes : int
        The same once what is returnable went back to the device.
    fits_defragmented_bytes : int
        The same if all that is free lay together.
    """

    segments: int
    reserved_bytes: int
    allocated_bytes: int
    free_segments: int
    returnable_bytes: int
    holes: int
    stranded_bytes: int
    largest_free_bytes: int
    fits_bytes: int
    fits_after_release_bytes: int
    fits_defragmented_bytes: int

    @property
    def unused_bytes(self) -> int:
        """Reserved and in no block."""
        return self.reserved_bytes - self.allocated_bytes

    @property
    def fragmentation(self) -> float:
        """1 - largest free block / all free blocks; NaN where none is free."""
        unused = self.unused_bytes
        return 1 - self.largest_free_bytes / unused if unused else float("nan")


def room(cut: Pieces, device_bytes: int | None = None) -> Room:
    """What is free in one state; ``device_bytes`` as for `fragmentation`."""
    free = free_of(cut)
    reserved = int(cut.segments["size_bytes"].sum())
    unused, returnable = int(free.size_bytes.sum()), int(_returnable(free).sum())
    whole = free.size_bytes == free.segment_bytes
    largest, fits, after = _served(free, reserved, device_bytes)
    left = 0 if device_bytes is None else max(device_bytes - reserved, 0)
    return Room(
        segments=len(cut.segments),
        reserved_bytes=reserved,
        allocated_bytes=reserved - unused,
        free_segments=int(whole.sum()),
        returnable_bytes=returnable,
        holes=int((~whole).sum()),
        stranded_bytes=unused - returnable,
        largest_free_bytes=largest,
        fits_bytes=fits,
        fits_after_release_bytes=after,
        fits_defragmented_bytes=max(after, largest_request(unused + left)),
    )


def _served(
    free: FreeBlocks, reserved_bytes: int, device_bytes: int | None
) -> tuple[int, int, int]:
    """Largest free block, largest request that fits, the same after a release."""
    size = free.size_bytes
    fits = int(np.where(free.small, np.minimum(size, SMALL_REQUEST_LIMIT), size).max(initial=0))
    left = 0 if device_bytes is None else max(device_bytes - reserved_bytes, 0)
    released = int(_returnable(free).sum()) + left
    return int(size.max(initial=0)), fits, max(fits, largest_request(released))


def _returnable(free: FreeBlocks) -> npt.NDArray[np.int64]:
    """Bytes of each free block that could go back: whole segments, or whole steps of one."""
    offset = free.address - free.segment_address
    step = np.where(free.small, SMALL_SEGMENT, LARGE_SEGMENT)
    steps = np.maximum((offset + free.size_bytes) // step * step - -(-offset // step) * step, 0)
    whole = np.where(free.size_bytes == free.segment_bytes, free.segment_bytes, 0)
    return np.where(free.expandable, steps, whole).astype(np.int64)
