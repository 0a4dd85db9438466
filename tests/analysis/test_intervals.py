"""Unions of intervals against sets of whole numbers."""

from __future__ import annotations

import numpy as np
import pytest

from maiprof_nb.analysis._intervals import (
    Union,
    clip,
    complement,
    covered_before,
    intersect,
    minus,
    overlap,
    union,
)

LOW, HIGH = -30, 30


def cells(start, end):
    """The unit cells [n, n + 1) that intervals cover."""
    return {n for a, b in zip(start, end, strict=True) for n in range(a, b)}


def of(found: Union):
    return cells(found.start_ns.tolist(), found.end_ns.tolist())


def check(found: Union):
    """Sorted, not empty, not touching."""
    assert (found.end_ns > found.start_ns).all()
    assert (found.start_ns[1:] > found.end_ns[:-1]).all()
    assert found.start_ns.dtype == found.end_ns.dtype == np.int64


def intervals(seed, most=25):
    random = np.random.default_rng(seed)
    start = random.integers(LOW, HIGH, random.integers(0, most))
    end = np.minimum(start + random.integers(0, 9, len(start)), HIGH)
    return start.astype(np.int64), end.astype(np.int64)


@pytest.mark.parametrize("seed", range(80))
def test_against_sets(seed):
    one_start, one_end = intervals(seed)
    other_start, other_end = intervals(seed + 1000)
    one, other = union(one_start, one_end), union(other_start, other_end)
    a, b = cells(one_start, one_end), cells(other_start, other_end)
    low, high = sorted(np.random.default_rng(seed).integers(LOW - 5, HIGH + 5, 2).tolist())
    window = set(range(low, high))
    for found, expected in (
        (one, a),
        (clip(one, low, high), a & window),
        (complement(one, low, high), window - a),
        (minus(one, other), a - b),
        (intersect(one, other), a & b),
    ):
        check(found)
        assert of(found) == expected
        assert found.length_ns == len(expected)


@pytest.mark.parametrize("seed", range(40))
def test_lengths_inside_many_intervals(seed):
    one = union(*intervals(seed))
    covered = of(one)
    at = np.arange(LOW - 3, HIGH + 4, dtype=np.int64)
    assert covered_before(one, at).tolist() == [sum(n < t for n in covered) for t in at]
    start, end = intervals(seed + 500)
    expected = [len(covered & set(range(a, b))) for a, b in zip(start, end, strict=True)]
    assert overlap(one, start, end).tolist() == expected


def test_touching_intervals_become_one():
    found = union(np.array([5, 0, 3]), np.array([9, 3, 5]))
    assert (found.start_ns.tolist(), found.end_ns.tolist()) == ([0], [9])


def test_nothing():
    nothing = union(np.empty(0, np.int64), np.empty(0, np.int64))
    one = union(np.array([1]), np.array([4]))
    assert nothing.length_ns == 0
    assert minus(nothing, one).length_ns == intersect(one, nothing).length_ns == 0
    assert intersect(nothing, nothing).length_ns == 0
    assert minus(one, nothing).length_ns == 3
    assert complement(nothing, 0, 5).length_ns == 5
    assert complement(one, 7, 7).length_ns == 0
    assert overlap(nothing, np.array([0]), np.array([9])).tolist() == [0]


def test_large_times_are_exact():
    big = 4 * 10**18
    one = union(np.array([big, big + 3]), np.array([big + 1, big + 7]))
    assert one.length_ns == 5
    assert complement(one, big, big + 7).length_ns == 2
