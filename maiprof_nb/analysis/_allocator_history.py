"""Where every block and segment of one device lay, and from which state of the log to which.

State ``k`` is after the first ``k`` events of the device's log; state 0 is before them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.allocator import (
    DEFAULT_POOL,
    LARGE_SEGMENT,
    SMALL_REQUEST_LIMIT,
    SMALL_SEGMENT,
    UNSPLIT_ROUNDING,
    AllocatorSettings,
    rounded,
)
from maiprof_nb.analysis._memory_log import MemoryDevice, memory_devices
from maiprof_nb.errors import NotAnswerableError, UsageError
from maiprof_nb.session import Session

Ints = npt.NDArray[np.int64]

_SIDES = ["first_state", "end_state"]


@dataclass(frozen=True)
class AllocatorHistory:
    """Lives of blocks and of segments of one device.

    Parameters
    ----------
    device : MemoryDevice
        Whose memory it is.
    settings : AllocatorSettings
        As the snapshot states them.
    events : DataFrame
        The device's part of `allocator_events`.
    ts_ns : array of int64
        When each state begins, in ns of the session (never falling).
    blocks : DataFrame
        By address: ``address, size_bytes, requested_bytes, stream, stack`` and the states in
        which it is in use, ``first_state <= k < end_state``; from ``pending_state`` on its free
        is waiting.
    segments : DataFrame
        By address: ``address, size_bytes, stream, pool, pool_id, expandable, first_state,
        end_state``; expandable segments in steps of 2 MiB.
    """

    device: MemoryDevice
    settings: AllocatorSettings
    events: pd.DataFrame
    ts_ns: Ints
    blocks: pd.DataFrame
    segments: pd.DataFrame

    @property
    def last_state(self) -> int:
        """The state after the last event: the snapshot's own."""
        return len(self.events)

    def state_at(self, ts_ns: int) -> int:
        """The state in force at a time, after all events of that very time stamp."""
        return max(int(np.searchsorted(self.ts_ns, ts_ns, side="right")) - 1, 0)


def allocator_history(session: Session, device: MemoryDevice | None = None) -> AllocatorHistory:
    """Follow one device's blocks and segments back from the final state through the log.

    Raises
    ------
    NotAnswerableError
        If the session has no memory snapshot with segments.
    UsageError
        If `device` is not one of the session's snapshots'.
    """
    known = [found for found in memory_devices(session) if found.kind == "snapshot"]
    if not known:
        raise NotAnswerableError(
            "no memory snapshot with segments is in this session",
            remedy="Record one (torch.cuda.memory._record_memory_history, then _dump_snapshot)",
        )
    device = known[0] if device is None else device
    if device not in known:
        raise UsageError(
            f"{device.label} is no snapshot of this session",
            remedy=f"Here: {'; '.join(found.label for found in known)}",
        )
    recording = session.recordings[device.recording]
    offset_ns = session.placements[device.recording].offset_ns
    settings = AllocatorSettings.of_snapshot(recording.meta.get("allocator_settings") or {})
    events, segments, blocks = (
        table[table["device"].eq(device.device).to_numpy()].reset_index(drop=True)
        for table in map(recording.table, ("allocator_events", "segments", "blocks"))
    )
    ends = len(events)
    at_ns = np.maximum.accumulate(events["ts_ns"].to_numpy(np.int64))
    begin = at_ns[:1] if ends else np.zeros(1, np.int64)
    pieces = _segment_lives(events, segments)
    lives = _block_lives(events, blocks, segments)
    lives["size_bytes"] = _sizes(lives, pieces, settings, ends)
    return AllocatorHistory(
        device=device,
        settings=settings,
        events=events,
        ts_ns=np.concatenate([begin, at_ns]) + offset_ns,
        blocks=lives.drop(columns="exact"),
        segments=pieces,
    )


def _pairs(address: Ints, position: Ints, opens: npt.NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Rows that open and the rows that close them, by address; -1 where the log has none.

    An address that is opened again was closed by that; a close without an open before it at its
    address closes what was there before the log; a second close closes nothing.
    """
    order = np.lexsort((position, address))
    same = np.diff(address[order], prepend=-1) == 0 if len(order) else np.zeros(0, bool)
    opened = opens[order]
    row = np.flatnonzero(opened)
    following = np.minimum(row + 1, max(len(order) - 1, 0))
    closed = (row + 1 < len(order)) & same[following]
    unseen = np.flatnonzero(~opened & ~same)
    none = np.full(len(unseen), -1, dtype=np.int64)
    return (
        np.concatenate([order[row], none]),
        np.concatenate([np.where(closed, order[following], -1), order[unseen]]),
    )


def _lives(rows: pd.DataFrame, opens: npt.NDArray[np.bool_], final: pd.DataFrame, ends: int) -> Any:
    """Lives of what the rows open and close, tied to what is there at the end.

    The columns ``opened, closed, kept`` are the rows of the two events and of `final`, or -1.
    """
    address = rows["address"].to_numpy(np.int64, na_value=0)
    position = rows["position"].to_numpy(np.int64)
    opened, closed = _pairs(address, position, opens)
    lives = pd.DataFrame({"opened": opened, "closed": closed})
    lives["address"] = address[np.where(opened >= 0, opened, closed)] if len(rows) else opened
    lives["first_state"] = np.where(opened >= 0, position[opened] + 1, 0) if len(rows) else 0
    lives["end_state"] = np.where(closed >= 0, position[closed] + 1, ends + 1) if len(rows) else 0

    row_of = pd.Series(np.arange(len(final)), index=final["address"].to_numpy(np.int64))
    row_of = row_of[~row_of.index.duplicated()]
    at_end = row_of.reindex(lives["address"]).fillna(-1).to_numpy(np.int64)
    lives["kept"] = np.where(closed < 0, at_end, -1)
    lost = (closed < 0) & (lives["kept"].to_numpy() < 0)
    lives.loc[lost, "end_state"] = ends  # gone between the log's end and the final state
    others = np.setdiff1d(np.arange(len(final)), lives["kept"].to_numpy())
    seen = np.isin(final["address"].to_numpy(np.int64)[others], address)
    more = pd.DataFrame(
        {
            "opened": -1,
            "closed": -1,
            "address": final["address"].to_numpy(np.int64)[others],
            "first_state": np.where(seen, ends, 0),
            "end_state": ends + 1,
            "kept": others,
        }
    )
    joined = pd.concat([lives, more], ignore_index=True)
    return joined[joined["first_state"] < joined["end_state"]].astype("int64")


def _block_lives(
    events: pd.DataFrame, blocks: pd.DataFrame, segments: pd.DataFrame
) -> pd.DataFrame:
    action = events["action"].astype(object)
    free = "free_completed" if action.eq("free_completed").any() else "free_requested"
    log = events.assign(position=np.arange(len(events)), action=action)
    rows = log[action.isin(["alloc", free])].reset_index(drop=True)
    used = blocks[blocks["state"].ne("inactive").to_numpy()].reset_index(drop=True)
    used = used.merge(segments[["segment", "stream"]], on="segment", how="left")
    used["stream"] = used["stream"].fillna(0).astype("int64")
    opens = rows["action"].eq("alloc").to_numpy(bool)
    lives = _lives(rows, opens, used, len(events))
    source = np.where(lives["opened"] >= 0, lives["opened"], lives["closed"])
    logged, kept = source >= 0, lives["kept"].to_numpy() >= 0

    def of(column: str, final: str) -> Any:
        values = pd.Series(pd.NA, index=lives.index, dtype="Int64")
        at_end = used[final].take(lives["kept"].to_numpy()[kept]).to_numpy()
        values[kept] = pd.array(at_end, dtype="Int64")
        said = pd.Series(pd.NA, index=lives.index, dtype="Int64")
        said[logged] = pd.array(rows[column].take(source[logged]).to_numpy(), dtype="Int64")
        return said.fillna(values)

    known = of("size_bytes", "requested_bytes")
    exact = pd.Series(0, index=lives.index)
    exact[kept] = used["size_bytes"].take(lives["kept"].to_numpy()[kept]).to_numpy()
    stack = of("stack", "stack").mask((lives["opened"] < 0).to_numpy() & logged)
    made = pd.DataFrame(
        {
            "address": lives["address"],
            "size_bytes": exact,
            "exact": exact > 0,
            "requested_bytes": known.fillna(exact).astype("int64"),
            "stream": of("stream", "stream").astype("int64"),
            "stack": stack,
            "first_state": lives["first_state"],
            "pending_state": _pending(log, rows, lives, used),
            "end_state": lives["end_state"],
        }
    )
    return made.sort_values(["address", "first_state"], ignore_index=True)


def _pending(log: pd.DataFrame, rows: pd.DataFrame, lives: Any, used: pd.DataFrame) -> Any:
    """The state from which each block waits for its free; its end where it never waits."""
    asked = log[log["action"].eq("free_requested")]
    pending = lives["end_state"].to_numpy(np.int64).copy()
    if rows["action"].eq("free_requested").any() or asked.empty:
        return pending
    left = pd.DataFrame({"address": lives["address"].to_numpy(), "at": pending})
    left["row"] = np.arange(len(left))
    right = pd.DataFrame(
        {
            "address": asked["address"].to_numpy(np.int64, na_value=0),
            "at": asked["position"].to_numpy(np.int64) + 1,
        }
    )
    right["asked"] = right["at"]
    found = pd.merge_asof(left.sort_values("at"), right.sort_values("at"), on="at", by="address")
    found = found.sort_values("row")["asked"].to_numpy(np.float64)
    first = lives["first_state"].to_numpy()
    waits = used["state"].astype(object).eq("pending_free").to_numpy(bool)
    kept = lives["kept"].to_numpy()
    ended = lives["closed"].to_numpy() >= 0
    ended |= waits[kept] & (kept >= 0) if len(waits) else False
    valid = ~np.isnan(found) & (found >= first) & ended
    pending[valid] = found[valid].astype(np.int64)
    return pending


def _segment_lives(events: pd.DataFrame, segments: pd.DataFrame) -> pd.DataFrame:
    log = events.assign(position=np.arange(len(events)), action=events["action"].astype(object))
    log = log[["position", "action", "address", "size_bytes", "stream"]]
    log["pool"] = np.where(log["size_bytes"].eq(SMALL_SEGMENT), "small", "large")
    grown = log["size_bytes"].mod(LARGE_SEGMENT).eq(0)
    log["pool"] = log["pool"].mask(
        log["action"].str.contains("map"), np.where(grown, "large", "small")
    )
    final = segments[["address", "size_bytes", "stream", "pool", "pool_id", "expandable"]]
    final = final.assign(
        pool=final["pool"].astype(object), pool_id=final["pool_id"].astype(object)
    ).fillna({"pool_id": DEFAULT_POOL})
    grows = final["expandable"].to_numpy(bool)
    whole = _held(log, ("segment_alloc", "segment_free"), final[~grows], len(events))
    steps = _held(
        _in_steps(log[log["action"].isin(["segment_map", "segment_unmap"])]),
        ("segment_map", "segment_unmap"),
        _in_steps(final[grows]),
        len(events),
    )
    made = pd.concat([whole.assign(expandable=False), steps.assign(expandable=True)])
    return made.sort_values(["address", "first_state"], ignore_index=True)


def _in_steps(rows: pd.DataFrame) -> pd.DataFrame:
    count = np.maximum(rows["size_bytes"].to_numpy(np.int64) // SMALL_SEGMENT, 1)
    made = rows.loc[rows.index.repeat(count)].reset_index(drop=True)
    turn = np.arange(len(made)) - np.repeat(np.cumsum(count) - count, count)
    made["address"] = made["address"].astype("Int64") + turn * SMALL_SEGMENT
    made["size_bytes"] = SMALL_SEGMENT
    return made


def _held(
    log: pd.DataFrame, actions: tuple[str, str], final: pd.DataFrame, ends: int
) -> pd.DataFrame:
    rows = log[log["action"].isin(actions)].reset_index(drop=True)
    final = final.reset_index(drop=True)
    opens = rows["action"].eq(actions[0]).to_numpy(bool)
    lives = _lives(rows, opens, final, ends).reset_index(drop=True)
    kept = lives["kept"].to_numpy()
    source = np.where(lives["opened"] >= 0, lives["opened"], lives["closed"])
    made = lives[["address", *_SIDES]].copy()
    for column in ("size_bytes", "stream", "pool"):
        values = np.empty(len(lives), dtype=object)
        values[kept < 0] = rows[column].to_numpy(object)[source[kept < 0]]
        values[kept >= 0] = final[column].to_numpy(object)[kept[kept >= 0]]
        made[column] = pd.Series(values, dtype=object if column == "pool" else "int64")
    pools = final["pool_id"].to_numpy(object)
    made["pool_id"] = [pools[row] if row >= 0 else DEFAULT_POOL for row in kept]
    return made


def _sizes(
    lives: pd.DataFrame, pieces: pd.DataFrame, settings: AllocatorSettings, ends: int
) -> Ints:
    """Sizes of blocks as they were, also where a large block was taken without a split.

    Free blocks among the large ones are never as small as what is not split off. So a block
    ends at the next border behind its rounded request, if one is that near while it lives.
    """
    asked, where = np.unique(lives["requested_bytes"].to_numpy(np.int64), return_inverse=True)
    least = np.array([rounded(int(size), settings) for size in asked], dtype=np.int64)[where]
    size = np.where(lives["exact"], lives["size_bytes"].to_numpy(np.int64), least)
    limit = settings.max_split_bytes
    slack = np.full(len(lives), SMALL_REQUEST_LIMIT)
    if limit is not None:
        slack[least >= limit] = UNSPLIT_ROUNDING
    piece, grows = Places(pieces, ends).holding(lives), pieces["expandable"].to_numpy(bool)
    open_ended = ~lives["exact"].to_numpy(bool) & (least > SMALL_REQUEST_LIMIT) & (piece >= 0)
    open_ended &= ~grows[piece] if len(pieces) else False
    row = np.flatnonzero(open_ended) if not settings.expandable else np.zeros(0, np.int64)
    address = lives["address"].to_numpy(np.int64)
    segment_end = (pieces["address"] + pieces["size_bytes"]).to_numpy(np.int64)[piece[row]]
    border = np.minimum(segment_end, Places(lives, ends).next_beside(lives.iloc[row], least[row]))
    left = border - address[row] - least[row]
    near = (left > 0) & (left <= slack[row])
    size[row[near]] += left[near]
    return size


class Places:
    """Lives by their addresses: which was where when. At one address, one at a time."""

    def __init__(self, lives: pd.DataFrame, ends: int) -> None:
        address = lives["address"].to_numpy(np.int64)
        self._distinct, rank = np.unique(address, return_inverse=True)
        self._span = ends + 2
        key = rank * self._span + lives["first_state"].to_numpy(np.int64)
        self._order = np.argsort(key, kind="stable")
        self._key, self._rank = key[self._order], rank[self._order]
        self._end = lives["end_state"].to_numpy(np.int64)[self._order]
        if "size_bytes" in lives:
            size = lives["size_bytes"].to_numpy(np.int64)
            self._size = size[self._order]
            reach = np.zeros(len(self._distinct), dtype=np.int64)
            np.maximum.at(reach, rank, size)
            self._reach = np.maximum.accumulate(self._distinct + reach)

    def holding(self, lives: pd.DataFrame) -> Ints:
        """For each of other lives the row of the one it began in; -1 if none."""
        address = lives["address"].to_numpy(np.int64)
        state = lives["first_state"].to_numpy(np.int64)
        found = np.full(len(lives), -1, dtype=np.int64)
        rank = np.searchsorted(self._distinct, address, side="right") - 1
        open_rows = np.flatnonzero(rank >= 0)
        while len(open_rows):
            at, when, behind = address[open_rows], state[open_rows], rank[open_rows]
            place = self._latest(behind, when)
            start = self._distinct[behind]
            hit = (place >= 0) & (self._end[place] > when) & (start + self._size[place] > at)
            found[open_rows[hit]] = self._order[place[hit]]
            rank[open_rows] -= 1
            further = ~hit & (behind > 0)
            further &= self._reach[np.maximum(behind - 1, 0)] > at
            open_rows = open_rows[further]
        return found

    def next_beside(self, lives: pd.DataFrame, least: Ints) -> Ints:
        """Of each life the nearest address, from its least size on, of one that lived with it."""
        start = lives["address"].to_numpy(np.int64) + least
        first, end = (lives[side].to_numpy(np.int64) for side in _SIDES)
        border = np.full(len(lives), np.iinfo(np.int64).max)
        rank = np.searchsorted(self._distinct, start)
        rows = np.flatnonzero(rank < len(self._distinct))
        while len(rows):
            ahead = self._distinct[rank[rows]]
            rows = rows[ahead - start[rows] <= UNSPLIT_ROUNDING]
            place = self._latest(rank[rows], end[rows] - 1)
            hit = (place >= 0) & (self._end[place] > first[rows])
            border[rows[hit]] = self._distinct[rank[rows[hit]]]
            rank[rows] += 1
            rows = rows[~hit]
            rows = rows[rank[rows] < len(self._distinct)]
        return border

    def _latest(self, rank: Ints, state: Ints) -> Ints:
        """The last life at an address that began by a state; -1 if none."""
        place = np.searchsorted(self._key, rank * self._span + state, side="right") - 1
        return np.where((place >= 0) & (self._rank[place] == rank), place, -1)
