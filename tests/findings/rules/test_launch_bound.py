"""The host launches too slowly: five operators of 40 us, one every 50 us."""

from __future__ import annotations

import pytest

from tests.findings.asking import US, finding
from tests.tiny_traces import Event, annotation, kernel, launch, operator, ranks, session

RULE = "launch-bound"


def five_operators(kernel_us: int) -> list[Event]:
    """Operator i ends at 1040 + 50 i with its launch; its kernel starts 2 us later."""
    events = []
    for i in range(5):
        end = 1040 + 50 * i
        events += [
            operator("aten::add", end - 40, 40),
            launch(i + 1, end - 2),
            kernel(end + 2, kernel_us, correlation=i + 1),
        ]
    return events


def test_short_kernels_wait_for_their_launches() -> None:
    found = finding(session(*five_operators(3)), RULE)
    assert found.outcome == "found"
    # Between two kernels lie 47 us, 40 of them inside the next operator; four such gaps.
    assert found.cost_ns == 4 * 40 * US
    assert found.share == pytest.approx(160 / 203)  # from 1042 to 1245
    assert found.severity == "high"
    assert found.evidence[0]["median_work_ns"] == 3 * US
    assert found.evidence[0]["median_interval_ns"] == 50 * US
    assert found.evidence[0]["launches_per_s"] == pytest.approx(5 / 203e-6)


def test_long_kernels_pass() -> None:
    assert finding(session(*five_operators(49)), RULE).outcome == "passed"


def test_cost_of_the_rank_that_has_it_worst() -> None:
    found = finding(ranks(five_operators(49), five_operators(3), five_operators(49)), RULE)
    assert found.cost_ns == 4 * 40 * US
    assert {row["recording"] for row in found.evidence} == {1}


def test_work_longer_than_the_launch_interval_is_not_launch_bound() -> None:
    # One launch comes 40 us late, the others every 5 us, and each kernel takes 20 us.
    events = [operator("aten::mm", 1030, 62), launch(1, 1000), kernel(1010, 20, correlation=1)]
    events += [launch(2 + i, 1090 + 5 * i) for i in range(4)]
    events += [kernel(1095 + 20 * i, 20, correlation=2 + i) for i in range(4)]
    found = finding(session(*events), RULE)
    assert found.outcome == "passed"
    assert "launches come faster than the work lasts" in found.title


def test_one_long_stall_is_no_late_launch() -> None:
    found = finding(
        session(
            launch(1, 1000), kernel(1010, 3, correlation=1),
            operator("aten::cudnn_init", 1020, 3_000),
            launch(2, 4_018), kernel(4_030, 3, correlation=2),
        ),
        RULE,
    )  # fmt: skip
    assert found.outcome == "passed"


def test_without_device_work_it_does_not_apply() -> None:
    found = finding(session(operator("aten::add", 1000, 5), annotation("x", 1000, 9)), RULE)
    assert found.outcome == "not-applicable"
    assert "device work" in found.reason
