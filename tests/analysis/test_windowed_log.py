"""A memory log cut to a window, against what the whole log says of the same moments."""

from __future__ import annotations

import numpy as np
import pytest

from maiprof_nb.analysis._windowed_log import cut
from maiprof_nb.analysis.active_memory import MemoryLog, memory_log
from maiprof_nb.timebase import TimeWindow
from tests.findings.tiny_memory import MIB, training


@pytest.fixture(scope="module")
def log() -> MemoryLog:
    return memory_log(training(10, left=3).session())


def test_the_curve_is_that_of_the_whole_log(log: MemoryLog) -> None:
    part = cut(log, TimeWindow(40_000, 90_000))
    assert part is not None
    at_ns = np.arange(40_000, 90_000, 500)
    same = log.allocated_bytes[log.states_at(at_ns)]
    assert (part.allocated_bytes[part.states_at(at_ns)] == same).all()
    assert part.span == TimeWindow(40_000, 90_000)


def test_lives_add_up_to_the_curve_in_every_state(log: MemoryLog) -> None:
    part = cut(log, TimeWindow(40_000, 90_000))
    assert part is not None
    lives = part.allocations
    for state, total in enumerate(part.allocated_bytes):
        living = (lives["first_state"] <= state) & (lives["end_state"] > state)
        assert lives.loc[living, "size_bytes"].sum() == total
    alive = lives["end_state"] > len(part.ts_ns) - 1
    assert (lives["end_ns"].isna() == alive).all()


def test_what_was_made_before_is_older_and_keeps_its_stack(log: MemoryLog) -> None:
    part = cut(log, TimeWindow(40_000, 90_000))
    assert part is not None
    old = part.allocations[part.allocations["before_log"]]
    assert old["size_bytes"].max() == 100 * MIB
    assert old["stack"].notna().all()
    assert (old["ts_ns"] < 40_000).all()


def test_outside_nothing_is_left_and_around_everything(log: MemoryLog) -> None:
    end_ns = log.span.end_ns
    assert cut(log, TimeWindow(end_ns + 1, end_ns + 10)) is None
    assert cut(log, TimeWindow(-5, 0)) is None
    assert cut(log, TimeWindow(0, end_ns)) is log
