"""Collections of a loop that runs here, against Python's own account of them."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.findings.asking import finding
from tests.live_torch import STEPS, recorded, torch

RULE = "garbage-collection"
WITH_GC = {
    "with_stack": True,
    "experimental_config": torch._C._profiler._ExperimentalConfig(record_python_gc_info=True),
}


class Collections:
    """Count and time of collections while `wanted`, from the interpreter's own hook."""

    def __init__(self) -> None:
        self.count, self.ns, self._since, self.wanted = 0, 0, 0, False

    def __call__(self, phase: str, _info: dict[str, Any]) -> None:
        if phase == "start":
            self._since = time.perf_counter_ns()
        elif self.wanted:
            self.count += 1
            self.ns += time.perf_counter_ns() - self._since


@pytest.fixture
def collections() -> Iterator[Collections]:
    """What the process held before is frozen, so that collections see the loop's objects only."""
    counted = Collections()
    gc.collect()
    gc.freeze()
    gc.callbacks.append(counted)
    yield counted
    gc.callbacks.remove(counted)
    gc.unfreeze()


def cycles(number: int) -> None:
    """Objects that only the collector can free."""
    for _ in range(number):
        ring: list[Any] = []
        ring.append(ring)


def test_automatic_collections(tmp_path: Path, collections: Collections) -> None:
    def step(number: int) -> None:
        collections.wanted = number >= 0
        cycles(20_000)
        collections.wanted = number in range(STEPS - 1)

    found = finding(recorded(tmp_path, step, **WITH_GC), RULE)
    assert found.outcome == "found"
    assert {row["name"] for row in found.evidence} == {"Python GC"}
    assert int(found.title.split()[0]) == pytest.approx(collections.count, abs=2)  # at the ends
    assert collections.count > 20
    # Two hooks, one after the other: a busy machine may switch in between.
    assert found.cost_ns == pytest.approx(collections.ns, rel=0.5)


@pytest.mark.parametrize("how", [{"with_stack": True}, WITH_GC], ids=["stacks", "stacks and gc"])
def test_calls_of_collect_in_the_loop(
    tmp_path: Path, collections: Collections, how: dict[str, Any]
) -> None:
    """They last longer than the collection in them, and no longer than their callers see."""
    taken = 0

    def step(number: int) -> None:
        nonlocal taken
        cycles(20_000)
        collections.wanted = number >= 0
        since = time.perf_counter_ns()
        gc.collect()
        taken += time.perf_counter_ns() - since if number >= 0 else 0
        collections.wanted = False

    gc.disable()
    try:
        found = finding(recorded(tmp_path, step, **how), RULE)
    finally:
        gc.enable()
    assert found.outcome == "found"
    assert found.title.startswith(f"{STEPS} garbage collections took")
    assert found.evidence[0]["name"] == "<built-in function collect>"
    assert collections.count == STEPS
    assert collections.ns <= found.cost_ns <= taken


def test_a_loop_with_little_garbage_passes(tmp_path: Path, collections: Collections) -> None:
    matrix = torch.randn(1024, 1024)

    def step(_number: int) -> None:
        collections.wanted = True
        matrix @ matrix
        cycles(400)

    found = finding(recorded(tmp_path, step, **WITH_GC), RULE)
    assert collections.count > 0
    assert found.outcome == "passed"
    assert "garbage collection" in found.title


def test_without_the_setting_automatic_collections_are_not_seen(tmp_path: Path) -> None:
    found = finding(recorded(tmp_path, lambda _: cycles(20_000)), RULE)
    assert found.outcome == "not-applicable"
    assert "record_python_gc_info" in found.reason
