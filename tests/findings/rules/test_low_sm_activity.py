"""SM activity, measured or estimated."""

from __future__ import annotations

import pytest

from tests import tiny_traces as tiny
from tests.findings.asking import US, finding
from tests.shipped_samples import loaded

RULE = "low-sm-activity"


def session(blocks: float, dur: float = 800) -> tiny.Session:
    args = {"blocks per SM": blocks, "est. achieved occupancy %": 10}
    return tiny.session(tiny.step(1, 1000, 1000), tiny.kernel(1000, dur, **args))


def test_found() -> None:
    """Busy 80 %, but a tenth of the SMs: 8 % of efficiency, 72 % of the step unused."""
    found = finding(session(0.1), RULE)
    assert found.outcome == "found"
    assert found.cost_ns == pytest.approx(720 * US, abs=2)
    assert "estimated" in found.title
    assert "8.0 %" in found.title
    assert "blocks" in found.advice


def test_idleness_is_said_to_be_idleness() -> None:
    """Busy 10 %, six SMs in ten: 6 % of efficiency, 4 % of the step unused, 90 % idle."""
    found = finding(session(0.6, dur=100), RULE)
    assert found.outcome == "found"
    assert found.share == pytest.approx(0.04, abs=1e-4)
    assert "idle time" in found.advice
    assert found.severity == "low"


def test_work_that_fills_a_device_which_is_hardly_used_passes() -> None:
    """10 % of efficiency because it works 10 % of the time: nothing is lost on the SMs."""
    found = finding(session(2, dur=100), RULE)
    assert found.outcome == "passed"
    assert "is 10.0 %" in found.title
    assert "works 10.0 % of the time" in found.title


def test_passed() -> None:
    assert finding(session(2), RULE).outcome == "passed"


def test_not_applicable() -> None:
    found = finding(tiny.session(tiny.kernel(1000, 5)), RULE)
    assert found.outcome == "not-applicable"
    assert "not sampled" in found.reason


@pytest.mark.xdist_group("simulated samples")
def test_measured_goes_before_estimated() -> None:
    found = finding(loaded("before"), RULE)
    assert found.outcome == "found"
    assert "measured" in found.title
    assert "SM occupancy 9.1 %" in found.title
    assert finding(loaded("workers"), RULE).outcome == "passed"
