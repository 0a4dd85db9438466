"""Cycles, slopes and survivors by hand counts."""

from __future__ import annotations

import numpy as np
import pytest

from maiprof_nb.analysis._theil_sen import theil_sen
from maiprof_nb.analysis.memory_cycles import memory_cycles, survivors
from maiprof_nb.errors import NotAnswerableError
from tests.findings.tiny_memory import KEPT, MIB, Job, training
from tests.shipped_samples import loaded, truth


def test_a_slope_that_odd_values_do_not_move() -> None:
    values = 3.0 * np.arange(20)
    values[[4, 11]] = 1e6
    slope = theil_sen(values)
    assert slope.value == 3.0
    assert slope.low <= 3.0 <= slope.high


def test_the_interval_of_the_published_method() -> None:
    # Sen (1968) with n=4: C = 1.96 sqrt(4*3*13/18) = 5.77 of 6 slopes, so the extremes
    slope = theil_sen(np.array([0.0, 1.0, 1.0, 4.0]))
    # pairs: 1, 1/2, 4/3, 0, 3/2, 3
    assert slope.value == pytest.approx((1 + 4 / 3) / 2)
    assert (slope.low, slope.high) == (0.0, 3.0)


def test_noise_has_no_sure_slope() -> None:
    values = np.random.default_rng(1).normal(size=50)
    slope = theil_sen(values)
    assert slope.low < 0 < slope.high


def test_cycles_by_repetition() -> None:
    found = memory_cycles(training(20).session())
    assert (found.how, found.even, found.rising) == ("repetition", True, False)
    assert (found.floor_bytes, found.tooth_bytes) == (100 * MIB, 65 * MIB)
    assert found.period_ns == 15_000  # 5 allocs and 5 frees of two events, one a microsecond
    assert len(found.cycles) in (19, 20)
    assert found.cycles["warm_up"].sum() == 2


def test_cycles_by_steps_of_the_sample() -> None:
    found = memory_cycles(loaded("leak"))
    steps = [one["step"] for one in truth("leak")["steps"]]
    assert found.how == "steps"
    assert set(found.cycles["step"]) <= set(steps)
    assert len(found.cycles) >= len(steps) - 1


def test_survivors_by_stack() -> None:
    found = memory_cycles(training(20, left=3).session())
    lines = survivors(found)
    assert lines["label"].tolist() == [KEPT]
    assert lines["bytes_per_cycle"].tolist() == [3 * MIB]
    assert lines["steady"].tolist() == [True]


def test_one_line_now_and_then_is_not_steady() -> None:
    job = Job()
    for step in range(30):
        held = [job.take(16 * MIB, "forward (/job/model.py:10)") for _ in range(4)]
        job.give(job.take(MIB, KEPT))
        if step in (10, 20):
            job.take(5 * MIB, KEPT)
        job.give(*held)
    assert not survivors(memory_cycles(job.session()))["steady"].any()


def test_no_cycles() -> None:
    with pytest.raises(NotAnswerableError, match="no 5 cycles"):
        memory_cycles(training(2).session())
