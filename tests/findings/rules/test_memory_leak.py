"""Floors that rise, rise for a while, or do not; and a leak whose truth is written down."""

from __future__ import annotations

import pytest

from maiprof_nb.timebase import TimeWindow
from tests.findings.asking import finding
from tests.findings.tiny_memory import KIB, MIB, Job, training
from tests.shipped_samples import loaded, truth

RULE = "memory-leak"


def test_three_mib_a_cycle() -> None:
    found = finding(training(20, left=3).session(), RULE)
    assert found.outcome == "found"
    assert found.title.startswith("The floor rises by 3.00 MiB a cycle (95 % interval 3.00 MiB to")
    assert "train (/job/train.py:20) leaves 3.00 MiB behind each cycle" in found.title
    row = found.evidence[0]
    assert (row["bytes_per_cycle"], row["slope_bytes"]) == (3 * MIB, 3 * MIB)
    # 20 cycles less 2 of warm-up; what the last two leave may still be freed
    assert (row["blocks"], row["size_bytes"]) == (16, 16 * 3 * MIB)
    assert found.size_bytes == 16 * 3 * MIB
    assert "mark steps" in found.advice  # nobody marked these cycles


def test_a_level_floor_passes() -> None:
    found = finding(training(20).session(), RULE)
    assert found.outcome == "passed"
    assert found.title.startswith("The floor does not rise: 0 B a cycle")


def test_a_floor_that_rises_and_stays_passes() -> None:
    assert finding(training(40, left=1, stop=18).session(), RULE).outcome == "passed"


def test_optimizer_state_made_once_is_no_leak() -> None:
    job = Job()
    for _ in range(12):  # one tensor's state a repetition, as the first step makes it
        held = [job.take(8 * MIB, "forward (/job/model.py:10)") for _ in range(4)]
        job.take(2 * MIB, "step (/torch/optim/adamw.py:99)")
        job.give(*held)
    assert finding(job.session(), RULE).outcome == "passed"


def test_a_growing_key_value_cache_is_named_as_one() -> None:
    job = Job()
    for _ in range(20):
        held = [job.take(16 * MIB, "forward (/job/model.py:10)") for _ in range(4)]
        job.take(MIB, "update (/job/kv_cache.py:7)")
        job.give(*held)
    found = finding(job.session(), RULE)
    assert found.outcome == "passed"
    assert "key-value cache made in update (/job/kv_cache.py:7) grows" in found.title


def test_a_ramp_does_not_apply() -> None:
    job = Job()
    for _ in range(12):  # layers whose activations are kept
        for _ in range(3):
            job.take(8 * MIB, "forward (/job/model.py:10)")
        job.give(job.take(512 * KIB, "forward (/job/model.py:11)"))
    found = finding(job.session(), RULE)
    assert found.outcome == "not-applicable"
    assert "does not come down" in found.reason


def test_a_pass_that_piles_up_after_even_teeth_does_not_apply() -> None:
    job = training(20)  # 20 even teeth, then a pass whose activations stay
    for _ in range(20):
        job.give(job.take(4 * MIB, "forward (/job/model.py:10)"))
        job.take(16 * MIB, "forward (/job/model.py:10)")
        job.give(job.take(2 * MIB, "forward (/job/model.py:10)"))
    assert finding(job.session(), RULE).outcome != "found"


def test_a_selected_window_is_judged_alone() -> None:
    whole = training(40, left=3, stop=18).session()  # level once 18 steps are over
    assert finding(whole, RULE).outcome == "passed"
    early = whole.select(window=TimeWindow(0, 18 * 15_000))  # 15 events a step, one a microsecond
    found = finding(early, RULE)
    assert found.outcome == "found"
    assert found.scope["window_ns"] == [0, 18 * 15_000]
    row = found.evidence[0]
    assert row["slope_bytes"] == 3 * MIB
    assert row["blocks"] <= 16  # of 18 cycles, without warm-up and the last two
    late = whole.select(window=TimeWindow(20 * 15_000, 40 * 15_000))
    assert finding(late, RULE).outcome == "passed"


def test_too_few_cycles_do_not_apply() -> None:
    assert finding(training(4, left=3).session(), RULE).outcome == "not-applicable"


def test_the_sample_with_a_leak() -> None:
    """Steps, bytes a step and the stack are those the sample was made with."""
    known = truth("leak")["memory"]
    found = finding(loaded("leak"), RULE)
    assert (found.outcome, found.severity) == ("found", "high")
    row = found.evidence[0]
    assert row["how"] == "steps"
    each = known["leak_bytes_per_step"]
    assert (row["slope_bytes"], row["slope_low_bytes"], row["slope_high_bytes"]) == (each,) * 3
    assert row["bytes_per_cycle"] == each
    assert row["line"] == "forward (recommender/model.py:47)"
    assert any("recommender/model.py:47 forward" in frame for frame in known["leak_stack"])
    assert row["period_ns"] == pytest.approx(73e6, rel=0.02)  # steps of 72 to 74 ms
    total = known_total("leak")
    left = (total - known["peak_allocated_bytes"]) // each
    assert row["cycles_until_full"] == left
    assert f"full after at most {left} more steps" in found.title


def test_steps_of_the_sample_can_be_selected() -> None:
    found = finding(loaded("leak").select(steps=(10, 24)), RULE)
    assert found.outcome == "found"
    assert "over 13 steps" in found.title  # 15 less 2 of warm-up
    assert found.evidence[0]["slope_bytes"] == truth("leak")["memory"]["leak_bytes_per_step"]
    assert finding(loaded("leak").select(steps=(10, 12)), RULE).outcome == "not-applicable"


def known_total(name: str) -> int:
    """The simulated device's memory, as its truth states it."""
    return int(truth(name)["metrics"]["memory_total_mib"]) * MIB


def test_the_sample_without_one_passes() -> None:
    assert finding(loaded("before"), RULE).outcome == "passed"


def test_after_a_failed_request_no_room_is_promised() -> None:
    """The sample's device is full: "72 more cycles" would be of memory that no request gets."""
    found = finding(loaded("oom"), RULE)
    assert found.outcome == "found"
    assert "72.0 MiB a cycle" in found.title
    assert "more cycle" not in found.title
    assert found.evidence[0]["cycles_until_full"] is None
