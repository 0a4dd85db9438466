"""Small pieces of device work and the gaps before them."""

from __future__ import annotations

import pytest

from maiprof_nb import Session
from tests.findings.asking import US, finding
from tests.tiny_traces import kernel, launch, operator, session

RULE = "small-kernels"


def five_operators(durations: list[int]) -> Session:
    """Operator i takes 40 us up to 1040 + 50 i; its kernel starts 2 us later."""
    events = []
    for i, kernel_us in enumerate(durations):
        end = 1040 + 50 * i
        events += [operator("aten::add", end - 40, 40), launch(i + 1, end - 2)]
        events.append(kernel(end + 2, kernel_us, correlation=i + 1, name=f"k{kernel_us}"))
    return session(*events)


def test_small_work_and_the_gaps_before_it() -> None:
    found = finding(five_operators([3, 3, 20, 3, 3]), RULE)
    assert found.outcome == "found"
    assert "80.0 % of 5 pieces of device work" in found.title
    # Three gaps end with a small piece: two with the 40 us of an operator, the one after the
    # piece of 20 us (1162 to 1192) with 28 us. The gap that ends with that piece does not count.
    assert found.cost_ns == (40 + 28 + 40) * US
    assert found.share == pytest.approx(108 / 203)
    assert found.evidence[0]["name"] == "k3"
    assert (found.evidence[0]["pieces"], found.evidence[0]["device_ns"]) == (4, 12 * US)


def test_large_work_passes() -> None:
    assert finding(five_operators([20, 20, 20, 3, 3]), RULE).outcome == "passed"  # 40 % are small


def test_small_work_without_gaps_passes() -> None:
    events = [launch(i + 1, 1000 + i) for i in range(5)]
    events += [kernel(1100 + 3 * i, 3, correlation=i + 1) for i in range(5)]
    assert finding(session(*events), RULE).outcome == "passed"


def test_one_long_stall_is_no_launch() -> None:
    stall = [
        launch(1, 1000), kernel(1010, 3, correlation=1), operator("aten::init", 1020, 3_000),
        launch(2, 4_018), kernel(4_030, 3, correlation=2),
    ]  # fmt: skip
    assert finding(session(*stall), RULE).outcome == "passed"


def test_without_device_work_it_does_not_apply() -> None:
    assert finding(session(operator("aten::add", 1000, 5)), RULE).outcome == "not-applicable"
