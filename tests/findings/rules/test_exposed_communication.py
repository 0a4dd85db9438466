"""Communication that no compute hides."""

from __future__ import annotations

from tests import tiny_traces as tiny
from tests.findings.asking import US, finding

RULE = "exposed-communication"


def test_found() -> None:
    """Step 1: 100 us of 200 hidden; step 2: 50 of 50 exposed; together 150 of 1000."""
    found = finding(
        tiny.session(
            tiny.step(1, 1000, 500),
            tiny.step(2, 1500, 500),
            tiny.kernel(1000, 200),
            tiny.nccl(1100, 200),
            tiny.nccl(1600, 50),
        ),
        RULE,
    )
    assert found.outcome == "found"
    assert found.cost_ns == 150 * US
    assert found.cost_ns_per_step == 75 * US
    assert "15.0 %" in found.title
    assert "40.0 % of its communication is hidden" in found.title
    steps = [row for row in found.evidence if row["table"] == "steps"]
    assert [(row["step"], row["exposed_communication_ns"]) for row in steps] == [
        (1, 100 * US),
        (2, 50 * US),
    ]


def test_passed() -> None:
    session = tiny.session(tiny.step(1, 1000, 1000), tiny.kernel(1000, 500), tiny.nccl(1100, 420))
    found = finding(session, RULE)
    assert found.outcome == "passed"
    assert "2.0 %" in found.title


def test_not_applicable() -> None:
    assert finding(tiny.session(tiny.kernel(1000, 5)), RULE).outcome == "not-applicable"
