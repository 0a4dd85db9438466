"""One step of seven that takes three times as long."""

from __future__ import annotations

import pytest

from maiprof_nb import Session
from tests.findings.asking import US, finding
from tests.tiny_traces import kernel, launch, operator, python, session, step

RULE = "slow-step"
CHECKPOINT = "train.py(9): save_checkpoint"


def steps_of(*durations: int, device: bool = True) -> Session:
    """What a step has above 1000 us goes to a checkpoint at its start."""
    events, now = [], 1000
    for number, dur in enumerate(durations):
        events.append(step(number, now, dur))
        if dur > 1000:
            events.append(python(CHECKPOINT, now, dur - 1000))
        begin = now + max(dur - 1000, 0)
        events.append(operator("aten::mm", begin + 1, 20))
        if device:
            events += [
                launch(number + 1, begin + 10),
                kernel(begin + 20, 979, correlation=number + 1),
            ]
        now += dur
    return session(*events)


def test_the_slow_step_and_why() -> None:
    found = finding(steps_of(1000, 1000, 1010, 1000, 3000, 990, 1000), RULE)
    assert found.outcome == "found"
    assert found.cost_ns == 2000 * US
    assert found.share == pytest.approx(2000 / 9000, rel=1e-3)
    assert found.severity == "high"
    (evidence,) = found.evidence
    assert (evidence["step"], evidence["median_ns"]) == (4, 1000 * US)
    assert (evidence["phase"], evidence["phase_excess_ns"]) == ("other", 2000 * US)
    assert (evidence["cause"], evidence["cause_excess_ns"]) == ("Python", 2000 * US)
    assert (evidence["call"], evidence["call_excess_ns"]) == (CHECKPOINT, 2000 * US)
    assert "step 4 longest with 3.00 ms" in found.title
    assert CHECKPOINT in found.title


def test_without_a_device_the_host_tells_why() -> None:
    found = finding(steps_of(1000, 1000, 1000, 1000, 3000, device=False), RULE)
    assert (found.outcome, found.evidence[0]["cause"]) == ("found", None)


def test_scattered_steps_pass() -> None:
    # Deviations from the median 1000: 0, 100, 100, 200, 200, 300, 300; median 200, and five
    # times its 1.4826-fold is 1483.
    assert finding(steps_of(1000, 900, 1100, 800, 1200, 700, 1300), RULE).outcome == "passed"


def test_equal_steps_with_one_a_little_longer_pass() -> None:
    # No scatter at all, but 100 us are less than a fifth of a step.
    assert finding(steps_of(1000, 1000, 1000, 1000, 1100), RULE).outcome == "passed"


def test_four_steps_are_too_few() -> None:
    assert finding(steps_of(1000, 1000, 1000, 3000), RULE).outcome == "not-applicable"
