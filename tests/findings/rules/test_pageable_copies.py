"""Copies of pageable memory, added up by hand."""

from __future__ import annotations

import pytest

from tests import tiny_traces as tiny
from tests.findings.asking import US, finding

RULE = "pageable-copies"


def copy(ts: float, dur: float, what: str, **more: object) -> tiny.Event:
    return tiny.kernel(ts, dur, name=f"Memcpy {what}", category="gpu_memcpy", **more)


STEP = tiny.step(1, 1000, 1000)


def test_found() -> None:
    """800 kB in 200 us are 4 GB/s, 500 kB in 50 us 10 GB/s."""
    found = finding(
        tiny.session(
            STEP,
            copy(1000, 100, "HtoD (Pageable -> Device)", bytes=500_000),
            copy(1200, 100, "HtoD (Pageable -> Device)", bytes=300_000),
            copy(1400, 50, "HtoD (Pinned -> Device)", bytes=500_000),
        ),
        RULE,
    )
    assert found.outcome == "found"
    assert found.cost_ns == 200 * US
    assert found.size_bytes == 800_000
    assert found.severity == "high"
    assert "2 copies" in found.title
    assert "at 4.0 GB/s, pinned ones reach 10.0 GB/s" in found.title


def test_passed() -> None:
    session = tiny.session(
        STEP,
        copy(1000, 5, "DtoH (Device -> Pageable)", bytes=8),
        copy(1100, 300, "HtoD (Pinned -> Device)", bytes=8),
    )
    assert finding(session, RULE).outcome == "passed"


@pytest.mark.parametrize(
    "given",
    [
        tiny.session(STEP, copy(1000, 100, "HtoD (Host -> Device)")),  # ROCm
        tiny.session(STEP, copy(1000, 100, "DtoD (Device -> Device)", bytes=8)),
        tiny.session(STEP, tiny.kernel(1000, 100)),
    ],
)
def test_not_applicable(given: tiny.Session) -> None:
    assert finding(given, RULE).outcome == "not-applicable"
