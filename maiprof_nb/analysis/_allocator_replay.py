"""The requests of a real log, fed to the model of the allocator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from maiprof_nb.allocator import AllocatorModel, AllocatorSettings, Places, Segment
from maiprof_nb.analysis._allocator_history import AllocatorHistory, Ints
from maiprof_nb.analysis.allocator_state import living_segments, state_of

KEPT, PACKED = "kept", "packed"
_RANGE = -1  # in place of a size: an expandable segment's range of addresses
_LEAST_RANGE = 2**36  # bytes; no request of any device is as large


@dataclass(frozen=True)
class Replay:
    """What the model did with a log's requests.

    Parameters
    ----------
    allocs, same_place : int
        Requests, and how many of them the model gave the real address.
    taken, given : list of int
        Bytes of every segment taken from and returned to the device, in order.
    reserved_bytes : array of int64
        Reserved memory in each state of the log.
    returnable_bytes : int
        Of it, what the model could return to the device after the log's last event.
    """

    allocs: int
    same_place: int
    taken: list[int]
    given: list[int]
    reserved_bytes: Ints
    returnable_bytes: int

    @property
    def peak_reserved_bytes(self) -> int:
        """The most that was taken from the device at once."""
        return int(self.reserved_bytes.max(initial=0))


class _Watched(AllocatorModel):
    """The model, told the real addresses of new segments, noting what it takes and gives."""

    def __init__(self, settings: AllocatorSettings, limit_bytes: int | None) -> None:
        super().__init__(settings, limit_bytes=limit_bytes, first_address=2**52)
        self.real: dict[int, int] = {}
        self.taken: list[int] = []
        self.given: list[int] = []

    def new_address(self, size_bytes: int) -> int:
        real = self.real.pop(_RANGE if size_bytes >= _LEAST_RANGE else size_bytes, None)
        free = real is not None and real not in self.segments
        return super().new_address(size_bytes) if real is None or not free else real

    def moved(self, segment: Segment, address: int, size_bytes: int) -> None:  # noqa: ARG002
        """Note the bytes."""
        (self.taken if size_bytes > 0 else self.given).append(abs(size_bytes))


@dataclass(frozen=True)
class _Steps:
    """What the program asked for, in order of the log: rows of `history.blocks` and releases."""

    position: Ints
    kind: Ints  # 0 = return what is cached, 1 = free, 2 = request
    row: Ints

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        columns = (self.position.tolist(), self.kind.tolist(), self.row.tolist())
        return zip(*columns, strict=True)


def replay(
    history: AllocatorHistory,
    settings: AllocatorSettings | None = None,
    *,
    start: str = KEPT,
    retries: bool = True,
    limit_bytes: int | None = None,
) -> Replay:
    """Feed the requests and frees of a log to the model.

    Parameters
    ----------
    history : AllocatorHistory
        The log.
    settings : AllocatorSettings, optional
        The log's own by default.
    start : str
        ``kept``: begin with the segments that were there; ``packed``: with the blocks in use
        then, requested one after the other from an empty device.
    retries : bool
        Also return cached memory where the log did so only to serve the next request.
    limit_bytes : int, optional
        What the device gives; the model returns cached memory itself when it needs to.

    Raises
    ------
    OutOfMemoryError
        If the limit does not do.
    """
    model = _Watched(settings or history.settings, limit_bytes)
    blocks = history.blocks
    place: dict[int, int] = {}
    first = np.flatnonzero((blocks["first_state"] == 0).to_numpy())
    address = blocks["address"].tolist()
    requested = blocks["requested_bytes"].tolist()
    stream = blocks["stream"].tolist()
    pool = _pools(history)
    if start == KEPT:
        _adopt_state(model, history)
        place = dict(zip(first.tolist(), [address[row] for row in first], strict=True))
    else:
        for row in first.tolist():
            place[row] = model.place(requested[row], stream[row], pool[row]).address
    model.taken.clear()
    reserved = np.zeros(history.last_state + 1, dtype=np.int64)
    reserved[0] = model.reserved_bytes
    real = _real_segments(history)
    allocs = same = done = 0
    for position, kind, row in _steps(history, retries=retries):
        reserved[done + 1 : position + 1] = model.reserved_bytes
        done = position
        if kind == 0:
            model.return_cached()
        elif kind == 1:
            model.give_up(place.pop(row))
        else:
            model.real = real.get(position, {})
            place[row] = model.place(requested[row], stream[row], pool[row]).address
            allocs += 1
            same += place[row] == address[row]
        reserved[position + 1] = max(model.reserved_bytes, reserved[position + 1])
    reserved[done + 1 :] = model.reserved_bytes
    taken, given = list(model.taken), list(model.given)
    return Replay(allocs, same, taken, given, reserved, model.return_cached())


def until(history: AllocatorHistory, state: int) -> AllocatorHistory:
    """The log as if it had ended in a state."""
    begun = []
    for lives in (history.blocks, history.segments):
        kept = lives[(lives["first_state"] <= state).to_numpy()].reset_index(drop=True)
        later = [name for name in ("pending_state", "end_state") if name in kept]
        begun.append(kept.assign(**{name: kept[name].clip(upper=state + 1) for name in later}))
    return replace(
        history,
        events=history.events.iloc[:state],
        ts_ns=history.ts_ns[: state + 1],
        blocks=begun[0],
        segments=begun[1],
    )


def _adopt_state(model: AllocatorModel, history: AllocatorHistory) -> None:
    state = state_of(history, 0)
    used = state[state["state"].ne("inactive").to_numpy()]
    names = ("segment_address", "address", "size_bytes", "requested_bytes")
    of_segment: dict[int, list[tuple[int, int, int]]] = {}
    for at, *block in zip(*(used[name].tolist() for name in names), strict=True):
        of_segment.setdefault(at, []).append((block[0], block[1], block[2]))
    for row in living_segments(history, 0).itertuples():
        segment = Segment(row.address, row.size_bytes, row.stream, row.pool == "small")
        segment.pool_id, segment.expandable = row.pool_id, row.expandable
        model.adopt(segment, of_segment.get(row.address, ()))


def _pools(history: AllocatorHistory) -> list[str]:
    """The private pool of each block: that of the segment it lay in."""
    held = Places(history.segments, history.last_state).holding(history.blocks)
    pools = history.segments["pool_id"].to_numpy(object)
    return [str(pools[row]) for row in held]


def _steps(history: AllocatorHistory, *, retries: bool) -> _Steps:
    first, end = (history.blocks[side].to_numpy(np.int64) for side in ("first_state", "end_state"))
    made = np.flatnonzero(first > 0)
    gone = np.flatnonzero(end <= history.last_state)
    returns = release_runs(history)
    if not retries:
        returns = returns[~returns["retry"].to_numpy()]
    at = returns["position"].to_numpy(np.int64)
    position = np.concatenate([first[made] - 1, end[gone] - 1, at])
    kind = np.repeat(np.array([2, 1, 0], dtype=np.int64), [len(made), len(gone), len(at)])
    row = np.concatenate([made, gone, np.zeros(len(at), np.int64)])
    order = np.lexsort((kind, position))
    return _Steps(position[order], kind[order], row[order])


def release_runs(history: AllocatorHistory) -> pd.DataFrame:
    """Where the log returns segments: ``position`` of the first, ``size_bytes`` and more.

    ``needed_bytes`` = what was reserved before, and the new segment that follows. ``retry`` =
    the allocator may have done it to serve a request: a new segment follows at once, and with
    it more would have been reserved than ever was.
    """
    action = history.events["action"].astype(object)
    gives = action.isin(["segment_free", "segment_unmap"]).to_numpy(bool)
    takes = action.isin(["segment_alloc", "segment_map"]).to_numpy(bool)
    begins = gives & ~np.concatenate([[False], gives[:-1]])
    run = np.cumsum(begins)[gives]
    position = np.flatnonzero(begins)
    size = history.events["size_bytes"].to_numpy(np.int64)
    ends = np.flatnonzero(gives & ~np.concatenate([gives[1:], [False]]))
    follows = np.concatenate([np.where(takes, size, 0), [0]])[ends + 1]
    reserved = reserved_in_states(history)
    needed = reserved[position] + follows
    return pd.DataFrame(
        {
            "position": position,
            "size_bytes": np.bincount(run, size[gives], len(position) + 1)[1:].astype(np.int64),
            "needed_bytes": needed,
            "retry": (follows > 0) & (needed > reserved.max()),
        }
    )


def retries(history: AllocatorHistory) -> list[int]:
    """Events that returned segments which the allocator may have returned to serve a request."""
    runs = release_runs(history)
    gives = history.events["action"].isin(["segment_free", "segment_unmap"]).to_numpy(bool)
    at = np.flatnonzero(gives)
    run = np.searchsorted(runs["position"].to_numpy(np.int64), at, side="right") - 1
    mine = runs["retry"].to_numpy(bool)[run] if len(runs) else np.zeros(0, dtype=bool)
    return [int(event) for event in history.events["event"].to_numpy(np.int64)[at[mine]]]


def device_limit(history: AllocatorHistory) -> int | None:
    """The most the device can have given, where the log shows that it gave no more."""
    returns = release_runs(history)
    refused = returns.loc[returns["retry"], "needed_bytes"]
    return None if refused.empty else int(refused.min()) - 1


def reserved_in_states(history: AllocatorHistory) -> Ints:
    """Bytes of all segments in each state of the log."""
    return _summed(history.segments, history.last_state)


def allocated_in_states(history: AllocatorHistory) -> Ints:
    """Bytes of all blocks in use, also those waiting to be freed, in each state of the log."""
    return _summed(history.blocks, history.last_state)


def requested_in_states(history: AllocatorHistory) -> Ints:
    """As `allocated_in_states`, in bytes as asked for."""
    return _summed(history.blocks, history.last_state, "requested_bytes")


def _summed(lives: pd.DataFrame, last: int, column: str = "size_bytes") -> Ints:
    change = np.zeros(last + 2, dtype=np.int64)
    size = lives[column].to_numpy(np.int64)
    np.add.at(change, lives["first_state"].to_numpy(np.int64), size)
    np.subtract.at(change, lives["end_state"].to_numpy(np.int64), size)
    return np.cumsum(change)[:-1]


def _real_segments(history: AllocatorHistory) -> dict[int, dict[int, int]]:
    """For the event after each new segment, or run of mapped parts, its bytes and real address."""
    action = history.events["action"].astype(object)
    size = history.events["size_bytes"].to_numpy(np.int64)
    address = history.events["address"].to_numpy(np.int64, na_value=0)
    taken = np.flatnonzero(action.eq("segment_alloc").to_numpy(bool))
    found = {int(at) + 1: {int(size[at]): int(address[at])} for at in taken}
    mapped = action.eq("segment_map").to_numpy(bool)
    begins = np.flatnonzero(mapped & ~np.concatenate([[False], mapped[:-1]]))
    ends = np.flatnonzero(mapped & ~np.concatenate([mapped[1:], [False]]))
    for first, last in zip(begins.tolist(), ends.tolist(), strict=True):
        found[last + 1] = {_RANGE: int(address[first])}
    return found
