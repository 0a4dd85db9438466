"""Arithmetic of unions of half-open intervals, as sorted disjoint (start, end) arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

Ints = npt.NDArray[np.int64]


class Union(NamedTuple):
    """Disjoint, sorted, non-touching intervals."""

    start_ns: Ints
    end_ns: Ints

    @property
    def length_ns(self) -> int:
        """Total length."""
        return int((self.end_ns - self.start_ns).sum())


def union(start_ns: Ints, end_ns: Ints) -> Union:
    """Merge intervals; empty ones vanish."""
    real = end_ns > start_ns
    start_ns, end_ns = start_ns[real], end_ns[real]
    if len(start_ns) == 0:
        return Union(start_ns.astype(np.int64), end_ns.astype(np.int64))
    order = np.argsort(start_ns, kind="stable")
    start, reach = start_ns[order], np.maximum.accumulate(end_ns[order])
    first = np.concatenate(([True], start[1:] > reach[:-1]))
    last = np.concatenate((first[1:], [True]))
    return Union(start[first].astype(np.int64), reach[last].astype(np.int64))


def union_of(rows: pd.DataFrame) -> Union:
    """Merge the intervals of a table with ``ts_ns`` and ``dur_ns``."""
    start = rows["ts_ns"].to_numpy(np.int64)
    return union(start, start + rows["dur_ns"].to_numpy(np.int64))


def merged(parts: Sequence[Union]) -> Union:
    """Merge several unions; nothing of none."""
    nothing = np.empty(0, dtype=np.int64)
    return union(
        np.concatenate([nothing, *(part.start_ns for part in parts)]),
        np.concatenate([nothing, *(part.end_ns for part in parts)]),
    )


def clip(of: Union, start_ns: int, end_ns: int) -> Union:
    """The part inside a window."""
    start = np.clip(of.start_ns, start_ns, end_ns)
    end = np.clip(of.end_ns, start_ns, end_ns)
    keep = end > start
    return Union(start[keep], end[keep])


def complement(of: Union, start_ns: int, end_ns: int) -> Union:
    """What a window holds outside the union."""
    inside = clip(of, start_ns, end_ns)
    start = np.concatenate(([start_ns], inside.end_ns)).astype(np.int64)
    end = np.concatenate((inside.start_ns, [end_ns])).astype(np.int64)
    keep = end > start
    return Union(start[keep], end[keep])


def covered_before(of: Union, at_ns: Ints) -> Ints:
    """Length of the union before each moment."""
    done = np.concatenate(([0], np.cumsum(of.end_ns - of.start_ns))).astype(np.int64)
    index = np.searchsorted(of.start_ns, at_ns, side="right")
    if len(of.start_ns) == 0:
        return np.zeros(len(at_ns), dtype=np.int64)
    last = np.maximum(index - 1, 0)
    over = np.where(index > 0, np.maximum(of.end_ns[last] - at_ns, 0), 0)
    return done[index] - over


def overlap(of: Union, start_ns: Ints, end_ns: Ints) -> Ints:
    """Length of the union inside each of many intervals."""
    return covered_before(of, end_ns) - covered_before(of, start_ns)


def minus(of: Union, other: Union) -> Union:
    """What lies in the first and not in the second."""
    if len(of.start_ns) == 0:
        return of
    low, high = int(of.start_ns[0]), int(of.end_ns[-1])
    return intersect(of, complement(other, low, high))


def intersect(of: Union, other: Union) -> Union:
    """What lies in both."""
    edges = np.unique(np.concatenate((of.start_ns, of.end_ns, other.start_ns, other.end_ns)))
    if len(edges) < 2:
        return Union(edges[:0], edges[:0])
    start, end = edges[:-1], edges[1:]
    both = (overlap(of, start, end) > 0) & (overlap(other, start, end) > 0)
    return union(start[both], end[both])
