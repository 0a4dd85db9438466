"""Peak memory against the device's, from the allocator's events and from samplers."""

from __future__ import annotations

import pytest

from tests import tiny_traces as tiny
from tests.findings.asking import finding
from tests.shipped_samples import loaded

RULE = "memory-headroom"
GIB = 2**30
DEVICE = [{"id": 0, "name": "GPU", "totalGlobalMem": 16 * GIB}]


def session(reserved: int, devices: list = DEVICE) -> tiny.Session:
    args = {"Device Type": 1, "Device Id": 0, "Addr": 4096, "Bytes": 512, "Total Allocated": 512}
    event = {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 5, "tid": 5}
    return tiny.session(
        tiny.kernel(1000, 50),
        event | {"ts": 1010, "s": "t", "args": args | {"Total Reserved": reserved}},
        deviceProperties=devices,
    )


def test_found() -> None:
    """4 of 16 GiB; 5 % kept: 11.2 GiB free, at least 3.8 times the batch."""
    found = finding(session(4 * GIB), RULE)
    assert found.outcome == "found"
    assert found.size_bytes == int(16 * GIB * 0.95) - 4 * GIB
    assert "25.0 % of the device's memory (reserved by PyTorch's allocator)" in found.title
    assert found.evidence[0]["least_factor"] == 3.8
    assert found.change == "2 settings"


def test_passed() -> None:
    found = finding(session(12 * GIB), RULE)
    assert found.outcome == "passed"
    assert "75.0 %" in found.title


@pytest.mark.parametrize("given", [session(4 * GIB, []), tiny.session(tiny.kernel(1000, 5))])
def test_not_applicable(given: tiny.Session) -> None:
    assert finding(given, RULE).outcome == "not-applicable"


@pytest.mark.xdist_group("simulated samples")
def test_samples() -> None:
    """The case study: 47.13 % at most, and the batch was doubled."""
    found = finding(loaded("before"), RULE)
    assert found.outcome == "found"
    assert "47.1 %" in found.title
    assert found.evidence[0]["least_factor"] >= 2
    assert finding(loaded("batch"), RULE).outcome == "passed"
