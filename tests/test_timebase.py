"""Windows of time are half-open and never run backwards."""

from __future__ import annotations

import dataclasses

import pytest

from maiprof_nb import Clock, TimeWindow, UsageError


def test_length():
    assert TimeWindow(5, 12).dur_ns == 7
    assert TimeWindow(5, 5).dur_ns == 0


def test_backwards_is_refused():
    with pytest.raises(UsageError, match="before it starts"):
        TimeWindow(5, 4)


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        ((0, 10), (5, 20), (5, 10)),
        ((5, 20), (0, 10), (5, 10)),
        ((0, 10), (2, 3), (2, 3)),
        ((0, 5), (10, 20), (10, 10)),  # empty, at the nearer edge of the other
        ((30, 40), (10, 20), (20, 20)),
        ((0, 10), (10, 20), (10, 10)),
        ((-5, 5), (-9, -1), (-5, -1)),
    ],
)
def test_intersection(one, other, common):
    assert TimeWindow(*one).intersect(TimeWindow(*other)) == TimeWindow(*common)


def test_immutable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        TimeWindow(0, 1).start_ns = 3  # type: ignore[misc]
    assert Clock(None, "nothing said").ordered_only is False
