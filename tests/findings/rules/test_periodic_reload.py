"""Reloads that come back: twelve steps, the wait of each as written down."""

from __future__ import annotations

import pytest

from maiprof_nb import Session
from tests.findings.asking import US, finding
from tests.tiny_traces import annotation, kernel, launch, python, session, step

RULE = "periodic-reload"
USUAL, LONG = 100, 700
NEW_ITERATOR = "torch/utils/data/dataloader.py(484): __iter__"


def steps_of(waits: list[int], *, epoch: int = 0) -> Session:
    """One step a wait: so long in the loader, then 500 us of device work, 10 us after a launch."""
    events, now = [], 1000
    for number, wait in enumerate(waits):
        if epoch and number % epoch == 0:
            events.append(python(NEW_ITERATOR, now, 1))
        if wait:
            events.append(annotation("enumerate(DataLoader)#_It.__next__", now, wait))
        events += [launch(number + 1, now + wait), step(number + 10, now, wait + 510)]
        events.append(kernel(now + wait + 10, 500, correlation=number + 1))
        now += wait + 510
    return session(*events)


def waits(*long: int, count: int = 12) -> list[int]:
    return [LONG if number in long else USUAL for number in range(count)]


def test_every_fourth_step() -> None:
    found = finding(steps_of(waits(3, 7, 11)), RULE)
    assert found.outcome == "found"
    assert "700 µs for input every 4 steps: steps 13, 17, 21" in found.title
    assert found.cost_ns == 3 * (LONG - USUAL) * US
    total = 12 * 510 + 9 * USUAL + 3 * LONG
    assert found.share == pytest.approx(1800 / total)
    assert found.evidence[0]["steps"] == [13, 17, 21]


def test_epochs_are_counted_where_iterators_were_recorded() -> None:
    # An iterator every 2 steps; the 3rd and 7th step are 4 apart, so 2 epochs.
    assert "every 2 epochs (4 steps)" in finding(steps_of(waits(3, 7, 11), epoch=2), RULE).title


@pytest.mark.parametrize(
    ("long", "count"),
    [
        ((5,), 12),  # once
        ((1, 2, 9), 12),  # at no one distance
        ((3, 11), 20),  # 8 apart, but the 20th step, 8 further, is not long
        ((11, 19), 20),  # 8 apart, but the 4th, 8 before, is not long
    ],
)
def test_no_regular_distance_passes(long: tuple[int, ...], count: int) -> None:
    found = finding(steps_of(waits(*long, count=count)), RULE)
    assert found.outcome == "passed"
    assert "no regular distance" in found.title


def test_equal_waits_pass() -> None:
    assert finding(steps_of(waits()), RULE).outcome == "passed"


def test_without_loading_or_enough_steps_it_does_not_apply() -> None:
    assert finding(steps_of([0] * 12), RULE).outcome == "not-applicable"
    assert finding(steps_of(waits(3, count=7)), RULE).outcome == "not-applicable"
