"""The same copy over and over."""

from __future__ import annotations

import pytest

from tests import tiny_traces as tiny
from tests.findings.asking import US, finding

RULE = "redundant-copies"
MB = 1_000_000


def copies(*made: tuple[str, int], steps: int = 1) -> tiny.Session:
    """In each step of 1000 us one copy of 20 us after the other, inside aten::copy_."""
    events: list[tiny.Event] = []
    number = 0
    for step in range(steps):
        events.append(tiny.step(step, 1000 * (step + 1), 1000))
        for place, (direction, size) in enumerate(made):
            number += 1
            at = 1000 * (step + 1) + 50 * place
            events += [
                tiny.operator("aten::copy_", at, 10, **{"External id": number}),
                tiny.kernel(
                    at + 20,
                    20,
                    name=f"Memcpy {direction}",
                    category="gpu_memcpy",
                    bytes=size,
                    **{"External id": number},
                ),
            ]
    return tiny.session(*events)


def test_repeated_in_one_step() -> None:
    """Four alike of 20 us in a step: three of them, 60 us, are for nothing; in two steps 120."""
    found = finding(copies(*[("HtoD", MB)] * 4, steps=2), RULE)
    assert found.outcome == "found"
    assert found.cost_ns == 120 * US
    assert found.evidence[0]["calls"] == 8
    assert "6.0 %" in found.title


def test_there_and_back() -> None:
    found = finding(copies(("DtoH", MB), ("HtoD", MB), ("HtoD", 2 * MB)), RULE)
    assert found.outcome == "found"
    assert found.cost_ns == 20 * US
    assert "1 there and back" in found.title


@pytest.mark.parametrize(
    "given",
    [
        copies(("HtoD", MB), ("HtoD", 2 * MB), steps=5),  # a batch each step
        copies(*[("HtoD", 8)] * 9),  # scalars
        copies(("HtoD", MB), ("DtoH", MB)),  # results go back
    ],
)
def test_passed(given: tiny.Session) -> None:
    assert finding(given, RULE).outcome == "passed"


def test_not_applicable() -> None:
    assert finding(tiny.session(tiny.kernel(1000, 5)), RULE).outcome == "not-applicable"
    sizeless = tiny.session(tiny.kernel(1000, 5, name="Memcpy HtoD", category="gpu_memcpy"))
    assert "ROCm" in finding(sizeless, RULE).reason
