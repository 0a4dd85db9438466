"""Gaps in which the training thread is in data loading."""

from __future__ import annotations

import pytest

from maiprof_nb import Session
from tests.findings.asking import US, finding
from tests.tiny_traces import annotation, kernel, launch, ranks, session, step

RULE = "input-bound"


def one_step(*loading: tuple[int, int]) -> Session:
    """Idle from 1100 to 1800 of the step from 1000 to 2000."""
    return session(
        step(1, 1000, 1000), launch(1, 1000), kernel(1010, 90, correlation=1),
        *(annotation("enumerate(DataLoader)#_It.__next__", *one) for one in loading),
        launch(2, 1790), kernel(1800, 200, correlation=2),
    )  # fmt: skip


def test_loading_inside_a_gap() -> None:
    found = finding(one_step((1050, 100), (1300, 400)), RULE)
    assert found.outcome == "found"
    assert found.cost_ns == (50 + 400) * US  # the first 50 us lie beside device work
    assert found.share == pytest.approx(0.45)
    assert found.evidence[0]["input_ns"] == 450 * US


def test_gaps_and_time_are_those_of_one_device() -> None:
    """Rank 0 waits 400 us in one gap, rank 1 another 100 us: the worse is told, not their sum."""
    first, second = (
        [
            step(1, 1000, 1000), launch(1, 1000), kernel(1010, 90, correlation=1, device=rank),
            annotation("enumerate(DataLoader)#_It.__next__", 1300, loading),
            launch(2, 1790), kernel(1800, 200, correlation=2, device=rank),
        ]
        for rank, loading in ((0, 400), (1, 100))
    )  # fmt: skip
    found = finding(ranks(first, second), RULE)
    assert "40.0 % of the time, 400 µs in 1 gap;" in found.title
    assert [row["recording"] for row in found.evidence] == [0]


def test_little_loading_passes() -> None:
    found = finding(one_step((1300, 49)), RULE)
    assert (found.outcome, "4.9 %" in found.title) == ("passed", True)


def test_without_device_work_it_does_not_apply() -> None:
    found = finding(session(annotation("enumerate(DataLoader)#_It.__next__", 1000, 9)), RULE)
    assert found.outcome == "not-applicable"
