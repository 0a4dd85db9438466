"""The call tree against the rule told interval by interval."""

from __future__ import annotations

import numpy as np
import pytest

from maiprof_nb.analysis._nesting import depths, nesting_order, parents, sum_into_ancestors


def by_the_rule(lane, start, end):
    """As `torch.autograd.profiler_util` builds its tree.

    Sorted by start, then by falling end; the innermost still open interval that ends no
    earlier is the parent.
    """
    order = sorted(range(len(start)), key=lambda i: (lane[i], start[i], -end[i]))
    result = [-1] * len(start)
    opened: list[int] = []
    for i in order:
        while opened and (
            lane[opened[-1]] != lane[i] or start[i] >= end[opened[-1]] or end[i] > end[opened[-1]]
        ):
            opened.pop()
        if opened:
            result[i] = opened[-1]
        opened.append(i)
    return result


def first_enclosing(lane, start, end):
    """The same without a stack: the last one before it in the order that encloses it."""
    order = sorted(range(len(start)), key=lambda i: (lane[i], start[i], -end[i]))
    result = [-1] * len(start)
    for place, i in enumerate(order):
        for j in reversed(order[:place]):
            if lane[j] == lane[i] and end[j] >= end[i] and end[j] > start[i]:
                result[i] = j
                break
    return result


def arrays(*columns):
    return tuple(np.array(column, dtype=np.int64) for column in columns)


@pytest.mark.parametrize(
    ("intervals", "expected"),
    [
        ([], []),
        ([(0, 10)], [-1]),
        ([(0, 10), (1, 5), (2, 3)], [-1, 0, 1]),
        ([(0, 10), (1, 3), (3, 5)], [-1, 0, 0]),  # one ends where the next begins
        ([(0, 10), (0, 10), (0, 10)], [-1, 0, 1]),  # the same extent: in order of the file
        ([(0, 5), (0, 10)], [1, -1]),  # equal starts: the longer is outside
        ([(0, 10), (5, 15)], [-1, -1]),  # overlap is no nesting
        ([(0, 10), (5, 15), (6, 9)], [-1, -1, 1]),
        ([(0, 20), (5, 15), (10, 18), (11, 12)], [-1, 0, 0, 2]),
        ([(0, 10), (4, 4)], [-1, 0]),  # no length, inside
        ([(0, 10), (0, 0)], [-1, 0]),  # no length, at the start
        ([(0, 10), (10, 10)], [-1, -1]),  # no length, at the end: the other is over
        ([(5, 5), (5, 5)], [-1, -1]),  # neither is open when the other starts
        ([(-9, -1), (-5, -2)], [-1, 0]),
    ],
)
def test_small_cases(intervals, expected):
    start, end = arrays([i[0] for i in intervals], [i[1] for i in intervals])
    assert parents(np.zeros(len(start), dtype=np.int64), start, end).tolist() == expected


def test_lanes_do_not_enclose_one_another():
    lane, start, end = arrays([7, 3, 7, 3], [0, 1, 2, 3], [100, 50, 4, 4])
    assert parents(lane, start, end).tolist() == [-1, -1, 0, 1]


@pytest.mark.parametrize("seed", range(60))
def test_random_intervals(seed):
    """A coarse grid, so that equal starts and ends, no length and overlap are frequent."""
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 70))
    lane = random.integers(0, random.integers(1, 4), count)
    start = random.integers(-20, 20, count)
    end = start + random.integers(0, random.integers(2, 30), count)
    lane, start, end = arrays(lane, start, end)
    assert parents(lane, start, end).tolist() == first_enclosing(lane, start, end)


@pytest.mark.parametrize("seed", range(20))
def test_properly_nested_intervals_follow_torch(seed):
    """Where intervals nest, the tree is torch's, whose stack forgets what overlaps."""
    random = np.random.default_rng(seed)
    spans = [(0, 4096)]
    for _ in range(60):
        low, high = spans[int(random.integers(len(spans)))]
        cut = sorted(random.integers(low, high + 1, 2).tolist())
        if (
            all(
                b <= cut[0]
                or a >= cut[1]
                or (a <= cut[0] and b >= cut[1])
                or (cut[0] <= a and b <= cut[1])
                for a, b in spans
            )
            and cut[0] < cut[1]
        ):
            spans.append((cut[0], cut[1]))
    start, end = arrays([s[0] for s in spans], [s[1] for s in spans])
    lane = np.zeros(len(spans), dtype=np.int64)
    assert parents(lane, start, end).tolist() == by_the_rule(lane, start, end)


@pytest.mark.parametrize("scale", [1, 10**9, 10**17])
def test_times_of_any_size(scale):
    """One absurd duration must not make lanes run into each other."""
    lane, start, end = arrays(
        [0, 0, 1, 1, 2, 2, 3, 3], [0, 2, 1, 3, 0, 5, -4, 0], [40, 4, 9, 5, 6, 6, 9, 9]
    )
    expected = [-1, 0, -1, 2, -1, 4, -1, 6]
    assert parents(lane, start * scale, end * scale).tolist() == expected


def test_order_puts_parents_first():
    lane, start, end = arrays([1, 0, 0, 1], [5, 3, 3, 5], [6, 4, 9, 8])
    assert nesting_order(lane, start, end).tolist() == [2, 1, 3, 0]


def test_depths_and_sums():
    parent, values = arrays([-1, 0, 1, 1, -1], [1, 10, 100, 1000, 7])
    assert depths(parent).tolist() == [0, 1, 2, 2, 0]
    assert sum_into_ancestors(parent, values).tolist() == [1111, 1110, 100, 1000, 7]


@pytest.mark.parametrize("seed", range(10))
def test_sums_of_random_trees(seed):
    random = np.random.default_rng(seed)
    count = 50
    parent = np.array([random.integers(-1, i) if i else -1 for i in range(count)])
    order = random.permutation(count)  # parents need not come first
    place = np.empty(count, dtype=np.int64)
    place[order] = np.arange(count)
    shuffled = np.where(parent[order] >= 0, place[parent[order]], -1)
    values = random.integers(0, 1000, count)
    expected = values.copy()
    for i in range(count):
        above = shuffled[i]
        while above >= 0:
            expected[above] += values[i]
            above = shuffled[above]
    assert sum_into_ancestors(shuffled, values).tolist() == expected.tolist()
