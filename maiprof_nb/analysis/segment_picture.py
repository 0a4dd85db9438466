"""The segments of one moment as rows of cells, in a size that a browser draws at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis.allocator_state import AllocatorHistory, Pieces
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
    cut: Pieces,
    alone: dict[str, bool],
    *,
    columns: int = 1200,
    order: str = "address",
    max_cells: int = MAX_CELLS,
) -> SegmentPicture:
    """Every segment of one state, cut into cells no smaller than what can be seen.

    Parameters
    ----------
    cut : Pieces
        The state.
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
    UsageError
        If the order is not one of those.
    """
    if order not in ORDERS:
        raise UsageError(f"no order of segments: {order}", remedy=f"One of {', '.join(ORDERS)}")
    size = cut.segments["size_bytes"].to_numpy(np.int64)
    used = np.where(cut.block >= 0, cut.size_bytes, 0)
    held = np.bincount(cut.segment, used, len(size)).astype(np.int64)
    groups, group = _groups(cut.segments, size - held, alone)
    address = cut.segments["address"].to_numpy(np.int64)
    place = np.lexsort((*_keys(address, size, held, order), group))
    grain = groups["row_bytes"].to_numpy(np.float64)[group] / max(columns, 1)
    cells, below = _merged(cut, grain), grain
    while len(cells.segment) > max_cells and below.min() < size.max():
        below = below * 2
        cells = _merged(cut, below)
    rank = np.empty(len(size), dtype=np.int64)
    rank[place] = np.arange(len(size))
    return _drawn(cells.take(np.argsort(rank[cells.segment], kind="stable")), groups, place, cut,
                  size - held, below)  # fmt: skip


def one_segment(cut: Pieces, address: int, *, columns: int = 1200) -> SegmentPicture | None:
    """The segment that holds an address, as wide as a row; None if there is none."""
    begin = cut.segments["address"].to_numpy(np.int64)
    size = cut.segments["size_bytes"].to_numpy(np.int64)
    row = int(np.searchsorted(begin, address, side="right")) - 1
    if row < 0 or address >= begin[row] + size[row]:
        return None
    mine = np.flatnonzero(cut.segment == row)
    alone = Pieces(
        segments=cut.segments.iloc[[row]],
        address=cut.address[mine],
        size_bytes=cut.size_bytes[mine],
        segment=np.zeros(len(mine), dtype=np.int64),
        block=cut.block[mine],
        pending=cut.pending[mine],
    )
    unused = np.array([alone.size_bytes[alone.block < 0].sum()], dtype=np.int64)
    groups, _ = _groups(alone.segments, unused, dict.fromkeys(ALONE, True))
    groups["row_bytes"] = size[row]
    grain = np.array([size[row] / max(columns, 1)])
    return _drawn(_merged(alone, grain), groups, np.zeros(1, np.int64), alone, unused, grain)


def _drawn(
    cells: _Cells, groups: pd.DataFrame, place: Ints, cut: Pieces, unused: Ints, below: Floats
) -> SegmentPicture:
    count = np.bincount(cells.segment, minlength=len(place))
    merged = cells.kind == MERGED
    return SegmentPicture(
        groups=groups,
        address=cut.segments["address"].to_numpy(np.float64)[place],
        segment_bytes=cut.segments["size_bytes"].to_numpy(np.float64)[place],
        unused_bytes=unused.astype(np.float64)[place],
        cells=count[place].astype(np.int32),
        size_bytes=cells.size_bytes.astype(np.float64),
        kind=cells.kind.astype(np.uint8),
        block=cells.block.astype(np.int32),
        used_bytes=cells.used_bytes.astype(np.float64),
        merged_below_bytes=float(below[cells.segment[merged]].max(initial=0)),
    )


def _groups(
    segments: pd.DataFrame, unused: Ints, alone: dict[str, bool]
) -> tuple[pd.DataFrame, Ints]:
    """Pools and streams, the default pool and large segments first; the group of each segment."""
    code = np.zeros(len(segments), dtype=np.int64)
    columns = {name: segments[name].to_numpy() for name in _GROUP}
    for values in columns.values():
        codes, distinct = pd.factorize(values, sort=True)
        code = code * len(distinct) + codes
    kinds, first, number = np.unique(code, return_index=True, return_inverse=True)
    size = segments["size_bytes"].to_numpy(np.float64)
    pool = columns["pool"]
    row = {name: _row_bytes(size[pool == name], name, alone=alone[name]) for name in ALONE}
    named = pool[first].tolist()
    groups = pd.DataFrame(
        {
            **{name: values[first] for name, values in columns.items()},
            "segments": np.bincount(number, minlength=len(kinds)),
            "reserved_bytes": np.bincount(number, size, len(kinds)).astype(np.int64),
            "unused_bytes": np.bincount(number, unused, len(kinds)).astype(np.int64),
            "row_bytes": np.array([row[name] for name in named], dtype=np.int64),
            "one_per_row": np.array([alone[name] for name in named], dtype=bool),
        }
    )
    return groups, number.astype(np.int64)


def _keys(address: Ints, size: Ints, held: Ints, order: str) -> tuple[Ints, ...]:
    """Sort keys within a group, the last the first to count."""
    if order == "size":
        return (address, -size)
    if order == "unused":
        return (address, held - size, -np.where(held > 0, size - held, 0))
    return (address,)


@dataclass(frozen=True, slots=True)
class _Cells:
    segment: Ints
    size_bytes: Ints
    kind: Ints
    block: Ints
    used_bytes: Ints

    def take(self, rows: Ints) -> _Cells:
        return _Cells(self.segment[rows], self.size_bytes[rows], self.kind[rows],
                      self.block[rows], self.used_bytes[rows])  # fmt: skip


def _merged(cut: Pieces, grain: Floats) -> _Cells:
    """Cells; of neighbours smaller than the grain those that share a pixel are one."""
    size, segment, block = cut.size_bytes, cut.segment, cut.block
    kind = np.where(block < 0, HOLE, np.where(cut.pending, WAITS, USED))
    used = np.where(block >= 0, size, 0)
    if not len(size):
        return _Cells(segment, size, kind, block, used)
    least = grain[segment]
    small = size < least
    offset = cut.address - cut.segments["address"].to_numpy(np.int64)[segment]
    pixel = np.floor_divide(offset, least)
    begins = np.ones(len(size), dtype=bool)
    begins[1:] = ~small[1:] | ~small[:-1] | (np.diff(segment) != 0) | (np.diff(pixel) != 0)
    first = np.flatnonzero(begins)
    count = np.diff(np.append(first, len(size)))
    many = count > 1
    return _Cells(
        segment=segment[first],
        size_bytes=np.add.reduceat(size, first),
        kind=np.where(many, MERGED, kind[first]),
        block=np.where(many, count, block[first]),
        used_bytes=np.add.reduceat(used, first),
    )


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
