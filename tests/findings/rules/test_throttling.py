"""Clocks held down, by the driver's reasons and by the clock itself."""

from __future__ import annotations

import pytest

from maiprof_nb.loading import smi_query
from maiprof_nb.session import Session
from tests import tiny_traces as tiny
from tests.findings.asking import finding

RULE = "throttling"


def log(fields: str, *rows: str) -> Session:
    """A query log with a row a second."""
    lines = [f"2026/03/02 09:00:{i:02d}.000, 0, {row}" for i, row in enumerate(rows)]
    text = "\n".join([f"timestamp, index, {fields}", *lines, ""])
    return Session([smi_query.read(text.encode(), "gpu.csv")])


ACTIVE = "clocks_event_reasons.active, clocks.current.sm [MHz], utilization.gpu [%]"


def test_found_by_the_mask() -> None:
    """0x20 heat in half of the samples, the clock then 1000 of 2000 MHz."""
    hot, cool = "0x0000000000000020, 1000 MHz, 99 %", "0x0000000000000001, 2000 MHz, 99 %"
    found = finding(log(ACTIVE, cool, hot, cool, hot), RULE)
    assert found.outcome == "found"
    assert "Heat (driver) held the clock of GPU 0 down in 50.0 % of the samples" in found.title
    assert "50.0 % below its highest" in found.title
    assert found.severity == "high"


def test_found_by_fields() -> None:
    fields = "clocks_throttle_reasons.sw_power_cap, clocks_throttle_reasons.hw_slowdown, pstate"
    found = finding(
        log(fields, *["Active, Not Active, P0"] * 3, "Not Active, Not Active, P0"), RULE
    )
    assert found.outcome == "found"
    assert "A power cap" in found.title
    assert "75.0 %" in found.title
    assert found.cost_ns is None  # clocks were not sampled


def test_found_by_clock_and_temperature() -> None:
    fields = "clocks.sm [MHz], temperature.gpu, utilization.gpu [%]"
    rows = ["1900 MHz, 70, 98 %", "1200 MHz, 88, 98 %", "300 MHz, 85, 0 %", "1210 MHz, 89, 98 %"]
    found = finding(log(fields, *rows), RULE)
    assert found.outcome == "found"
    assert "66.7 % of the samples" in found.title  # two of three under load


@pytest.mark.parametrize(
    "given",
    [
        log(ACTIVE, *["0x0000000000000001, 345 MHz, 0 %"] * 3),  # idle is no fault
        log("clocks.sm [MHz], temperature.gpu, utilization.gpu [%]", *["1900 MHz, 88, 98 %"] * 3),
    ],
)
def test_passed(given: Session) -> None:
    assert finding(given, RULE).outcome == "passed"


def test_not_applicable() -> None:
    assert finding(tiny.session(tiny.kernel(1000, 5)), RULE).outcome == "not-applicable"
    assert finding(log("power.draw [W], fan.speed [%]", "50 W, 3 %"), RULE).outcome == (
        "not-applicable"
    )
