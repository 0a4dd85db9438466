"""Kernels an optimizer launches a step."""

from __future__ import annotations

import pytest

from maiprof_nb import Session
from tests.findings.asking import US, finding
from tests.tiny_traces import annotation, kernel, launch, ranks, session, step

RULE = "single-tensor-optimizer"


def one_step(kernels: int, kernel_us: int) -> Session:
    """A step of 2000 us whose optimizer takes 800 us from 1100 on."""
    events = [step(1, 1000, 2000), annotation("Optimizer.step#SGD.step", 1100, 800)]
    for i in range(kernels):
        events += [launch(i, 1100 + 5 * i), kernel(1200 + 20 * i, kernel_us, correlation=i)]
    return session(*events)


def test_many_small_kernels() -> None:
    found = finding(one_step(60, 3), RULE)
    assert found.outcome == "found"
    assert "60 pieces of device work a step, 3.00 µs each" in found.title
    assert found.cost_ns == 800 * US  # host time in the optimizer
    assert found.share == pytest.approx(0.4)
    assert found.change == "1 line"


@pytest.mark.parametrize(("kernels", "kernel_us"), [(49, 3), (60, 16)])
def test_few_or_large_kernels_pass(kernels: int, kernel_us: int) -> None:
    assert finding(one_step(kernels, kernel_us), RULE).outcome == "passed"


def test_each_rank_launches_its_own() -> None:
    """Two ranks of 30 a step each are not one optimizer of 60."""
    one = [step(1, 1000, 2000), annotation("Optimizer.step#SGD.step", 1100, 800)]
    for i in range(30):
        one += [launch(i, 1100 + 5 * i), kernel(1200 + 20 * i, 3, correlation=i)]
    found = finding(ranks(one, one), RULE)
    assert found.outcome == "passed"
    assert "launches 30 pieces of device work a step of each rank, 3.00 µs each" in found.title


def test_without_an_optimizer_it_does_not_apply() -> None:
    found = finding(session(launch(1, 1000), kernel(1010, 5, correlation=1)), RULE)
    assert found.outcome == "not-applicable"
