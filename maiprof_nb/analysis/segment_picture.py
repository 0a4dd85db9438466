"""The segments of one moment as rows of cells, in a size that a browser draws at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis.allocator_state import AllocatorHistory, Pieces, pieces_of
from maiprof_nb.errors import UsageError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ORDERS = ("address", "size", "unused")
USED, WAITS, HOLE, MERGED = range(4)  # kinds of cells

MAX_CELLS = 8000
ALONE = {"small": 4, "large": 24}  # so many segments have a row each; more than that share rows
_ROWS = {"small": 4, "large": 14}  # how many rows they fill then, at least
_GROUP = ["pool_id", "pool", "stream", "expandable"]


@dataclass(frozen=True)
class SegmentPicture:
    """Segments in the order they are drawn in, and their cells. Bounded in size.

    Parameters
    ----------
    state : int
        How many events of the log came before.
    groups : DataFrame
        One row for each stream and pool: ``pool_id, pool, stream, expandable, segments,
        reserved_bytes, unused_bytes, row_bytes, one_per_row``.
    address, segment_bytes, unused_bytes : array of float64
        Of each segment, group by group.
    cells : array of int32
        How many cells each segment has.
    size_bytes : array of float64
        Of each cell, in address order within its segment.
    kind : array of uint8
        ``USED``, ``WAITS`` (to be freed), ``HOLE`` or ``MERGED``: neighbours that together are
        narrower than what one can see.
    block : array of int32
        Row of ``history.blocks``; for merged cells how many blocks and holes they stand for; -1
        for holes.
    used_bytes : array of float64
        In use, or waiting, of each cell.
    merged_below_bytes : float
        The size below which neighbours were merged, where any were; 0 otherwise.
    """

    state: int
    groups: pd.DataFrame
    address: Floats
    segment_bytes: Floats
    unused_bytes: Floats
    cells: npt.NDArray[np.int32]
    size_bytes: Floats
    kind: npt.NDArray[np.uint8]
    block: npt.NDArray[np.int32]
    used_bytes: Floats
    merged_below_bytes: float


def row_each(history: AllocatorHistory) -> dict[str, bool]:
    """Whether small and large segments have a row each: the same at every moment of a log."""
    found = {}
    for pool, most in ALONE.items():
        lives = history.segments[history.segments["pool"].eq(pool).to_numpy(bool)]
        lives = lives[~lives["expandable"].to_numpy(bool)]
        change = np.zeros(history.last_state + 2, dtype=np.int64)
        np.add.at(change, lives["first_state"].to_numpy(np.int64), 1)
        np.subtract.at(change, lives["end_state"].to_numpy(np.int64), 1)
        found[pool] = int(np.cumsum(change)[:-1].max(initial=0)) <= most
    return found


def segment_picture(
    history: AllocatorHistory,
    state: int,
    alone: dict[str, bool],
    *,
    columns: int = 1200,
    order: str = "address",
    max_cells: int = MAX_CELLS,
) -> SegmentPicture:
    """Every segment of one state, cut into cells no smaller than what can be seen.

    Parameters
    ----------
    history : AllocatorHistory
        The log.
    state : int
        How many of its events came before.
    alone : dict
        As of `row_each`.
    columns : int
        Pixels of a row.
    order : str
        Of the segments within a group: by ``address``, ``size`` (largest first) or ``unused``
        (most free bytes beside blocks in use first, then most free).
    max_cells : int
        At most about so many cells; merging grows coarser until that holds.

    Raises
    ------
    NotAnswerableError
        If the log does not fit its segments.
    UsageError
        If the order is not one of those.
    """
    if order not in ORDERS:
        raise UsageError(f"no order of segments: {order}", remedy=f"One of {', '.join(ORDERS)}")
    cut = pieces_of(history, state)
    segments = cut.segments.reset_index(drop=True)
    used = np.where(cut.block >= 0, cut.size_bytes, 0)
    held = np.bincount(cut.segment, used, len(segments)).astype(np.int64)
    segments["unused_bytes"] = segments["size_bytes"].to_numpy(np.int64) - held
    groups, group = _groups(segments, alone)
    place = np.lexsort((*_keys(segments, held, order), group))
    row_bytes = groups["row_bytes"].to_numpy(np.float64)[group] if len(groups) else np.zeros(0)
    grain = row_bytes / max(columns, 1)
    cells = _merged(cut, grain)
    coarser = 1.0
    while len(cells["segment"]) > max_cells and coarser < 2**40:
        coarser *= 2
        cells = _merged(cut, grain * coarser)
    rank = np.empty(len(segments), dtype=np.int64)
    rank[place] = np.arange(len(segments))
    within = np.argsort(rank[cells["segment"]], kind="stable")
    count = np.bincount(cells["segment"], minlength=len(segments))
    merged = cells["kind"] == MERGED
    below = (grain * coarser)[cells["segment"][merged]]
    return SegmentPicture(
        state=state,
        groups=groups,
        address=segments["address"].to_numpy(np.float64)[place],
        segment_bytes=segments["size_bytes"].to_numpy(np.float64)[place],
        unused_bytes=segments["unused_bytes"].to_numpy(np.float64)[place],
        cells=count[place].astype(np.int32),
        size_bytes=cells["size_bytes"][within].astype(np.float64),
        kind=cells["kind"][within].astype(np.uint8),
        block=cells["block"][within].astype(np.int32),
        used_bytes=cells["used_bytes"][within].astype(np.float64),
        merged_below_bytes=float(below.max(initial=0)),
    )


def one_segment(
    history: AllocatorHistory, state: int, address: int, *, columns: int = 1200
) -> SegmentPicture | None:
    """The segment that holds an address, as wide as a row; None if there is none."""
    cut = pieces_of(history, state)
    begin = cut.segments["address"].to_numpy(np.int64)
    row = int(np.searchsorted(begin, address, side="right")) - 1
    if row < 0 or address >= begin[row] + int(cut.segments["size_bytes"].iloc[row]):
        return None
    mine = cut.segment == row
    segments = cut.segments.iloc[[row]].reset_index(drop=True)
    alone = Pieces(
        segments=segments,
        address=cut.address[mine],
        size_bytes=cut.size_bytes[mine],
        segment=np.zeros(int(mine.sum()), dtype=np.int64),
        block=cut.block[mine],
        pending=cut.pending[mine],
    )
    size = int(segments["size_bytes"].iloc[0])
    unused = int(alone.size_bytes[alone.block < 0].sum())
    groups, _ = _groups(segments.assign(unused_bytes=unused), dict.fromkeys(ALONE, True))
    groups["row_bytes"] = size
    grain = np.array([size / max(columns, 1)])
    cells = _merged(alone, grain)
    merged = bool((cells["kind"] == MERGED).any())
    return SegmentPicture(
        state=state,
        groups=groups,
        address=segments["address"].to_numpy(np.float64),
        segment_bytes=segments["size_bytes"].to_numpy(np.float64),
        unused_bytes=np.array([unused], dtype=np.float64),
        cells=np.array([len(cells["kind"])], dtype=np.int32),
        size_bytes=cells["size_bytes"].astype(np.float64),
        kind=cells["kind"].astype(np.uint8),
        block=cells["block"].astype(np.int32),
        used_bytes=cells["used_bytes"].astype(np.float64),
        merged_below_bytes=float(grain[0]) if merged else 0.0,
    )


def _groups(segments: pd.DataFrame, alone: dict[str, bool]) -> tuple[pd.DataFrame, Ints]:
    """Pools and streams, the default pool and large segments first; the group of each segment."""
    code = np.zeros(len(segments), dtype=np.int64)
    for name in _GROUP:
        codes, values = pd.factorize(segments[name], sort=True)
        code = code * len(values) + codes
    kinds, first, number = np.unique(code, return_index=True, return_inverse=True)
    size, unused = (segments[name].to_numpy(np.float64) for name in ("size_bytes", "unused_bytes"))
    groups = segments[_GROUP].take(first).reset_index(drop=True)
    groups["segments"] = np.bincount(number, minlength=len(kinds))
    groups["reserved_bytes"] = np.bincount(number, size, len(kinds)).astype(np.int64)
    groups["unused_bytes"] = np.bincount(number, unused, len(kinds)).astype(np.int64)
    pool = segments["pool"].to_numpy(object)
    row = {name: _row_bytes(size[pool == name], name, alone=alone[name]) for name in ALONE}
    groups["row_bytes"] = groups["pool"].map(row).astype("int64")
    groups["one_per_row"] = groups["pool"].map(alone).astype(bool)
    return groups, number.astype(np.int64)


def _keys(segments: pd.DataFrame, held: Ints, order: str) -> tuple[Any, ...]:
    """Sort keys within a group, the last the first to count."""
    address = segments["address"].to_numpy(np.int64)
    size = segments["size_bytes"].to_numpy(np.int64)
    if order == "size":
        return (address, -size)
    if order == "unused":
        unused = segments["unused_bytes"].to_numpy(np.int64)
        return (address, -unused, -np.where(held > 0, unused, 0))
    return (address,)


def _merged(cut: Pieces, grain: Floats) -> dict[str, Any]:
    """Cells; of neighbours smaller than the grain those that share a pixel are one."""
    size, segment, block = cut.size_bytes, cut.segment, cut.block
    kind = np.where(block < 0, HOLE, np.where(cut.pending, WAITS, USED))
    used = np.where(block >= 0, size, 0)
    if not len(size):
        return {"segment": segment, "size_bytes": size, "kind": kind, "block": block,
                "used_bytes": used}  # fmt: skip
    least = grain[segment]
    small = size < least
    offset = cut.address - cut.segments["address"].to_numpy(np.int64)[segment]
    pixel = np.floor_divide(offset, least)
    begins = np.ones(len(size), dtype=bool)
    begins[1:] = ~small[1:] | ~small[:-1] | (np.diff(segment) != 0) | (np.diff(pixel) != 0)
    first = np.flatnonzero(begins)
    count = np.diff(np.append(first, len(size)))
    many = count > 1
    return {
        "segment": segment[first],
        "size_bytes": np.add.reduceat(size, first),
        "kind": np.where(many, MERGED, kind[first]),
        "block": np.where(many, count, block[first]),
        "used_bytes": np.add.reduceat(used, first),
    }


def _row_bytes(size: Floats, pool: str, *, alone: bool) -> int:
    """What a row stands for: it changes in steps, so that scrubbing seldom changes it."""
    least = size.max(initial=0) if alone else size.sum() / _ROWS[pool]
    return _even(int(least))


def _even(size: int) -> int:
    """The next larger of 1, 1.5, 2, 3, 4, 6 ... MiB."""
    step = 1 << 20
    while step < size:
        if step * 3 // 2 >= size:
            return step * 3 // 2
        step *= 2
    return step
