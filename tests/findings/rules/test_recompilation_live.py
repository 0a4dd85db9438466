"""Compiled functions that run here, against the compiler's own account of its time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.findings.asking import finding
from tests.live_torch import STEPS, recorded, torch

RULE = "recompilation"
STEADY = [16] * STEPS
NEW_SHAPES = [16, 16, 16, 24, 16, 32]

pytestmark = pytest.mark.parametrize("with_stack", [False, True], ids=["plain", "stacks"])


class Loop:
    """A compiled function called with a size a step, and the time of each call."""

    def __init__(self, sizes: list[int]) -> None:
        self.sizes = sizes
        self.call = torch.compile(self._work, backend="aot_eager", dynamic=False)
        self.call_ns: list[int] = []

    @staticmethod
    def _work(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x @ x.T).sum()

    def step(self, number: int) -> None:
        x = torch.randn(self.sizes[number] if number >= 0 else 16, 16)
        since = time.perf_counter_ns()
        self.call(x)
        if number >= 0:
            self.call_ns.append(time.perf_counter_ns() - since)


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    torch._dynamo.reset()
    torch._dynamo.utils.compilation_time_metrics.clear()
    yield
    torch._dynamo.reset()


def test_new_shapes(tmp_path: Path, with_stack: bool) -> None:
    loop = Loop(NEW_SHAPES)
    found = finding(recorded(tmp_path, loop.step, with_stack=with_stack), RULE)
    assert found.outcome == "found"
    assert found.title.startswith("2 compilations in 2 steps after the first took")
    assert sorted(row["step"] for row in found.evidence) == [4, 6]  # step 0 was the warm-up
    # The first is the one of the warm-up; the compiler's clock leaves out its own way in.
    _, *later = torch._dynamo.utils.compilation_time_metrics["_compile.compile_inner"]
    assert len(later) == 2
    assert sum(later) * 1e9 <= found.cost_ns <= loop.call_ns[3] + loop.call_ns[5]
    assert found.cost_ns == pytest.approx(sum(later) * 1e9, rel=0.1)


def test_a_warm_loop_passes(tmp_path: Path, with_stack: bool) -> None:
    found = finding(recorded(tmp_path, Loop(STEADY).step, with_stack=with_stack), RULE)
    assert found.outcome == "passed"
    assert found.title == f"Nothing was compiled after the first of {STEPS} recorded steps."
