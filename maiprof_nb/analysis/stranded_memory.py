"""Free memory between live blocks: how much over time, and what would give it back."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from maiprof_nb.allocator import DEFAULT_POOL, MIB, AllocatorSettings
from maiprof_nb.analysis._allocator_history import AllocatorHistory, allocator_history
from maiprof_nb.analysis._allocator_replay import (
    KEPT,
    PACKED,
    allocated_in_states,
    replay,
    reserved_in_states,
    until,
)
from maiprof_nb.analysis._memory_log import MemoryDevice
from maiprof_nb.analysis.allocator_state import free_blocks, state_of
from maiprof_nb.analysis.fragmentation import holes_in
from maiprof_nb.analysis.held_memory import HeldMemory, held_memory
from maiprof_nb.analysis.memory_replay import agreement_of
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.session import Session

EXPANDABLE, SPLIT, ORDER = "expandable_segments:True", "max_split_size_mb", "long-lived first"
_SPLIT_BYTES = (64 * MIB, 256 * MIB)  # of each the better one is told
_MOST_HELD = 0.8  # of the holes' bytes: the stacks that hold them are what lives long
MOST_REQUESTS = 20_000  # a second per replay, and there are ten


@dataclass(frozen=True, slots=True)
class Moment:
    """What of the reserved memory is free between live blocks at one moment.

    Parameters
    ----------
    state : int
        Events of the log before it.
    ts_ns : int
        When, in ns of the session.
    reserved_bytes, allocated_bytes : int
        In segments; of it in use or waiting to be freed.
    stranded_bytes, holes, largest_hole_bytes : int
        Free in segments that also hold live blocks, in how many pieces, and the largest.
    cached_bytes, cached_segments : int
        In wholly free segments, and how many they are.
    """

    state: int
    ts_ns: int
    reserved_bytes: int
    allocated_bytes: int
    stranded_bytes: int
    holes: int
    largest_hole_bytes: int
    cached_bytes: int
    cached_segments: int

    @property
    def unused_bytes(self) -> int:
        """Reserved and in no live block."""
        return self.reserved_bytes - self.allocated_bytes

    @property
    def share(self) -> float:
        """Stranded part of what is reserved, 0 to 1."""
        return self.stranded_bytes / max(self.reserved_bytes, 1)


@dataclass(frozen=True)
class StrandedMemory:
    """Fragmentation of one snapshot's device in the selected window.

    Parameters
    ----------
    device : MemoryDevice
        Whose memory it is.
    peak, end, worst : Moment
        When most is allocated, the last moment, and when most is stranded.
    expandable : bool
        True if segments grow in place already.
    """

    device: MemoryDevice
    peak: Moment
    end: Moment
    worst: Moment
    expandable: bool


@dataclass(frozen=True, slots=True)
class Remedy:
    """What another setting or order would free for the device at one moment, by replaying the log.

    Parameters
    ----------
    setting : str
        As it is written in ``PYTORCH_CUDA_ALLOC_CONF``, or ``long-lived first``.
    least_freed_bytes, most_freed_bytes : int
        By how much less is held that cannot go back to the device; negative = more. The range is
        of what the log does not say: how blocks older than it would lie.
    """

    setting: str
    least_freed_bytes: int
    most_freed_bytes: int


def stranded_memory(
    session: Session, device: MemoryDevice, *, points: int = 200
) -> StrandedMemory | None:
    """Free bytes between live blocks over the selected window; None outside of it.

    Parameters
    ----------
    session : Session
        Its selected window counts, where the log has a place on the axis.
    device : MemoryDevice
        One of `memory_devices` that is a snapshot's.
    points : int
        At so many moments, evenly over the log's events, besides the peak and the end; the worst
        is the worst of these.

    Raises
    ------
    NotAnswerableError
        If the log does not fit the segments, and what is asked for is not the final state.

    Notes
    -----
    Where the log does not fit the segments and no window is selected, the final state, which the
    snapshot itself holds, stands for all three moments.
    """
    history = allocator_history(session, device)
    shown = _states(session, history)
    if len(shown) == 0:
        return None
    try:
        return _followed(history, shown, points)
    except NotAnswerableError:
        held = held_memory(session, device)
        if len(shown) <= history.last_state or held is None:
            raise
        end = _final(history, held)
        return StrandedMemory(device, end, end, end, held.expandable)


def _followed(history: AllocatorHistory, shown: np.ndarray, points: int) -> StrandedMemory:
    reserved, allocated = reserved_in_states(history), allocated_in_states(history)
    evenly = shown[np.linspace(0, len(shown) - 1, min(points, len(shown))).astype(np.int64)]
    peak = int(shown[0] + allocated[shown].argmax())

    def moment(state: int) -> Moment:
        return _moment(history, state, int(reserved[state]), int(allocated[state]))

    ends = moment(peak), moment(int(shown[-1]))
    worst = max([*ends, *map(moment, evenly.tolist())], key=lambda one: one.stranded_bytes)
    expandable = history.settings.expandable or bool(history.segments["expandable"].any())
    return StrandedMemory(history.device, ends[0], ends[1], worst, expandable)


def holders(session: Session, device: MemoryDevice, moment: Moment) -> pd.DataFrame:
    """Whose blocks keep the holes open then, as `maiprof_nb.analysis.fragmentation.holes`."""
    state = state_of(allocator_history(session, device), moment.state)
    return holes_in(state, session.recordings[device.recording].table("stacks"))


def remedies(
    session: Session, device: MemoryDevice, moment: Moment, *, most_requests: int = MOST_REQUESTS
) -> tuple[int, list[Remedy]]:
    """What settings of the allocator and another order would free for the device at a moment.

    Parameters
    ----------
    session : Session
        What was recorded.
    device : MemoryDevice
        One of `memory_devices` that is a snapshot's.
    moment : Moment
        Of its `stranded_memory`.
    most_requests : int
        Logs with more are not replayed; 20 000 requests take some seconds.

    Returns
    -------
    int, list of Remedy
        Requests of the log, and the remedies, largest least gain first; none where there is no
        request, or more than `most_requests`, or the model does not give all their real address.

    Notes
    -----
    Each is compared with the same replay under the setting in force. What counts is what is
    reserved and cannot go back: wholly free segments (of expandable ones also wholly free
    pages) are returned before a request fails. So ``garbage_collection_threshold``, which only
    returns such segments sooner, frees none of it, and is not replayed. ``max_split_size_mb``
    is the better of 64 and 256. ``long-lived first`` asks for what keeps most of the holes open
    before anything else.
    """
    history = allocator_history(session, device)
    requests = int((history.blocks["first_state"] > 0).sum())
    if not 0 < requests <= most_requests or not agreement_of(history).exact:
        return requests, []
    log, force = until(history, moment.state), history.settings
    real = {start: _held(log, force, start) for start in (KEPT, PACKED)}

    def tried(setting: str, settings: AllocatorSettings) -> Remedy:
        freed = [real[start] - _held(log, settings, start) for start in real]
        return Remedy(setting, min(freed), max(freed))

    found = []
    if not force.expandable:
        found.append(tried(EXPANDABLE, replace(force, expandable=True)))
        splits = [
            tried(f"{SPLIT}:{size // MIB}", replace(force, max_split_bytes=size))
            for size in _SPLIT_BYTES
        ]
        found.append(max(splits, key=lambda one: one.least_freed_bytes))
    first = _long_lived_first(log, holders(session, device, moment))
    if first is not None:
        freed = real[PACKED] - _held(first, force, PACKED)
        found.append(Remedy(ORDER, freed, freed))
    return requests, sorted(found, key=lambda one: -one.least_freed_bytes)


def _states(session: Session, history: AllocatorHistory) -> np.ndarray:
    states = np.arange(history.last_state + 1)
    window = session.selected_window
    if window is None or not session.placements[history.device.recording].on_axis:
        return states
    ends = np.append(history.ts_ns[1:], np.iinfo(np.int64).max)
    # the last event of a log belongs to a window that ends with it
    begun = (history.ts_ns < window.end_ns) | (window.end_ns >= history.ts_ns[-1])
    return states[begun & (ends > window.start_ns)]


def _moment(history: AllocatorHistory, state: int, reserved: int, allocated: int) -> Moment:
    free = free_blocks(history, state)
    torn = free.size_bytes[free.size_bytes != free.segment_bytes]
    return Moment(
        state=state,
        ts_ns=int(history.ts_ns[state]),
        reserved_bytes=reserved,
        allocated_bytes=allocated,
        stranded_bytes=int(torn.sum()),
        holes=len(torn),
        largest_hole_bytes=int(torn.max(initial=0)),
        cached_bytes=int(free.size_bytes.sum() - torn.sum()),
        cached_segments=len(free.size_bytes) - len(torn),
    )


def _final(history: AllocatorHistory, held: HeldMemory) -> Moment:
    return Moment(
        state=history.last_state,
        ts_ns=int(history.ts_ns[-1]),
        reserved_bytes=held.reserved_bytes,
        allocated_bytes=held.allocated_bytes,
        stranded_bytes=held.stranded_bytes,
        holes=held.holes,
        largest_hole_bytes=held.largest_hole_bytes,
        cached_bytes=held.cached_bytes,
        cached_segments=held.cached_segments,
    )


def _held(history: AllocatorHistory, settings: AllocatorSettings, start: str) -> int:
    """Bytes that cannot go back to the device after the log's last event."""
    made = replay(history, settings, start=start)
    return int(made.reserved_bytes[-1]) - made.returnable_bytes


def _long_lived_first(history: AllocatorHistory, held: pd.DataFrame) -> AllocatorHistory | None:
    """The log with what keeps most holes open asked for first; None if there is nothing new."""
    share = held["held_bytes"].cumsum().shift(fill_value=0) / max(held["held_bytes"].sum(), 1)
    stacks = held.loc[(share < _MOST_HELD) & held["stack"].notna(), "stack"]
    stays = history.blocks["end_state"] > history.last_state
    stays &= history.blocks["stack"].isin(stacks).fillna(value=False)
    made = history.blocks["first_state"] > 0
    pools = history.segments["pool_id"].astype(object)
    if not (stays & made).any() or pools.ne(DEFAULT_POOL).any():
        return None
    blocks = history.blocks.assign(first_state=history.blocks["first_state"].mask(stays, 0))
    ordered = pd.concat([blocks[stays], blocks[~stays]], ignore_index=True)
    return replace(history, blocks=ordered)
