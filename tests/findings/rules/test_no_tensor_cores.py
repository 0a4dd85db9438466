"""Matrix work beside the tensor cores, by hand-counted kernels and on the samples."""

from __future__ import annotations

import pytest

from tests import tiny_traces as tiny
from tests.findings.asking import US, finding
from tests.shipped_samples import loaded

RULE = "no-tensor-cores"
V100 = [{"id": 0, "name": "Tesla V100-SXM2-16GB", "computeMajor": 7}]
PLAIN, TENSOR = "volta_sgemm_128x32_nn", "volta_h884gemm_64x128_ldg8_nn"


def session(*kernels: tuple[str, float], devices: list = V100) -> tiny.Session:
    """A step of 1000 us with kernels of these names and lengths inside aten::mm."""
    events = [tiny.step(1, 1000, 1000), tiny.operator("aten::mm", 1000, 9, **{"External id": 1})]
    at = 1010.0
    for name, dur in kernels:
        events.append(tiny.kernel(at, dur, name=name, **{"External id": 1}))
        at += dur
    return tiny.session(*events, deviceProperties=devices)


def test_found() -> None:
    found = finding(session((PLAIN, 300)), RULE)
    assert found.outcome == "found"
    assert found.cost_ns == 300 * US
    assert found.severity == "high"
    assert "0.0 % of the matrix work, which takes 30.0 %" in found.title
    assert found.change == "13 lines"


def test_passed() -> None:
    found = finding(session((TENSOR, 250), (PLAIN, 50)), RULE)
    assert found.outcome == "passed"
    assert "83.3 %" in found.title


def test_too_little_matrix_work_to_matter() -> None:
    assert finding(session((PLAIN, 5)), RULE).outcome == "passed"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (
            session((PLAIN, 9), devices=[{"id": 0, "name": "Quadro GP100", "computeMajor": 6}]),
            "no t",
        ),
        (session(("mystery", 300)), "do not say"),
        (tiny.session(tiny.kernel(1000, 5)), "No matrix product"),
        (tiny.session(tiny.operator("aten::mm", 1000, 5)), "no device work"),
    ],
)
def test_not_applicable(given: tiny.Session, reason: str) -> None:
    found = finding(given, RULE)
    assert found.outcome == "not-applicable"
    assert reason in found.reason


@pytest.mark.xdist_group("simulated samples")
@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("before", "found"),
        ("workers", "found"),
        ("batch", "found"),
        ("amp", "passed"),
        ("optimizer", "passed"),
    ],
)
def test_samples(name: str, outcome: str) -> None:
    """Mixed precision is the fix that comes with `amp`."""
    assert finding(loaded(name), RULE).outcome == outcome
