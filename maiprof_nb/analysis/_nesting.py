"""Which interval of a thread lies directly inside which."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
_WIDEST = 2**62


def nesting_order(lane: Ints, start_ns: Ints, end_ns: Ints) -> npt.NDArray[np.intp]:
    """Positions sorted by lane, then start, then longest first: a parent before its children."""
    return np.lexsort((-end_ns, start_ns, lane))


def parents(lane: Ints, start_ns: Ints, end_ns: Ints) -> Ints:
    """The innermost enclosing interval on the same lane, or -1.

    Parameters
    ----------
    lane, start_ns, end_ns : ndarray of int64
        One value an interval; intervals of different lanes never enclose one another.

    Returns
    -------
    ndarray of int64
        Position of the parent in the input arrays.

    Notes
    -----
    The rule is that of `torch.autograd.profiler_util`: intervals sorted by start and then
    by falling end; one encloses a later one if it ends no earlier and has not ended when
    the later one starts. An interval that merely overlaps another is not its child.
    That is the nearest earlier interval whose end reaches a threshold, found for all
    intervals at once in a tree of maxima.
    """
    count = len(start_ns)
    if count == 0:
        return np.empty(0, dtype=np.int64)
    order = nesting_order(lane, start_ns, end_ns)
    lanes = np.unique(lane[order], return_inverse=True)[1].astype(np.int64)
    if int(end_ns.max()) - int(start_ns.min()) > _WIDEST // (int(lanes.max()) + 2):
        start_ns, end_ns = _ranks(start_ns, end_ns)
    low = int(start_ns.min())
    width = int(end_ns.max()) - low + 2
    shift = lanes * width - low
    ends = end_ns[order] + shift
    starts = start_ns[order] + shift
    found = _last_reaching(ends, np.maximum(ends, starts + 1))
    result = np.full(count, -1, dtype=np.int64)
    inside = found >= 0
    inside[inside] = lanes[found[inside]] == lanes[inside]
    result[order[inside]] = order[found[inside]]
    return result


def _ranks(start_ns: Ints, end_ns: Ints) -> tuple[Ints, Ints]:
    """The same order in small numbers, for times too large to be put end to end."""
    ranks = np.unique(np.concatenate((start_ns, end_ns)), return_inverse=True)[1].astype(np.int64)
    return ranks[: len(start_ns)], ranks[len(start_ns) :]


def _last_reaching(values: Ints, thresholds: Ints) -> Ints:
    """For each i the last j < i with ``values[j] >= thresholds[i]``, or -1."""
    count = len(values)
    size = 1 << max(1, (count - 1).bit_length())
    tree = np.full(2 * size, np.iinfo(np.int64).min, dtype=np.int64)
    tree[size : size + count] = values
    level = size
    while level > 1:
        tree[level // 2 : level] = np.maximum(
            tree[level : 2 * level : 2], tree[level + 1 : 2 * level : 2]
        )
        level //= 2
    node = np.arange(size, size + count)
    result = np.full(count, -1, dtype=np.int64)
    climbing = np.arange(count)
    found_at: list[tuple[Ints, Ints]] = []
    while len(climbing):  # up, until a left sibling holds one that reaches
        here = node[climbing]
        climbing, here = climbing[here > 1], here[here > 1]
        left = (here % 2 == 1) & (tree[here - 1] >= thresholds[climbing])
        found_at.append((climbing[left], here[left] - 1))
        climbing, here = climbing[~left], here[~left]
        node[climbing] = here // 2
    who = np.concatenate([pair[0] for pair in found_at])
    where = np.concatenate([pair[1] for pair in found_at])
    while (inner := where < size).any():  # down, to the right where the right one reaches
        right = 2 * where[inner] + 1
        where[inner] = np.where(tree[right] >= thresholds[who[inner]], right, right - 1)
    result[who] = where - size
    return result


def nearest_code(own: Ints, parent: Ints) -> Ints:
    """Each interval's own code, or that of the nearest one around it that has one, or -1.

    Every pass doubles how far up each one looks, so that deep stacks cost few passes.
    """
    found, ancestor = own.copy(), parent.copy()
    while len(open_ := np.flatnonzero((found < 0) & (ancestor >= 0))):
        at = ancestor[open_]
        found[open_], ancestor[open_] = found[at], ancestor[at]
    return found


def depths(parent: Ints) -> Ints:
    """How many ancestors each interval has."""
    depth, ancestor = (parent >= 0).astype(np.int64), parent.copy()
    while len(has := np.flatnonzero(ancestor >= 0)):
        at = ancestor[has]
        depth[has], ancestor[has] = depth[has] + depth[at], ancestor[at]
    return depth


def kept_parents(parent: Ints, kept: npt.NDArray[np.bool_]) -> Ints:
    """Parents among the kept intervals alone, as positions in what is kept."""
    around = nearest_code(np.where(kept, np.arange(len(parent)), -1), parent)
    number = np.append(np.cumsum(kept) - 1, -1)
    up = np.where(parent >= 0, around[parent], -1) if len(parent) else parent
    return number[up[kept]].astype(np.int64)


def sum_into_ancestors(parent: Ints, values: Ints) -> Ints:
    """Each interval's value plus those of everything inside it."""
    total = values.astype(np.int64).copy()
    depth = depths(parent)
    for level in range(int(depth.max(initial=0)), 0, -1):
        at = depth == level
        np.add.at(total, parent[at], total[at])
    return total
