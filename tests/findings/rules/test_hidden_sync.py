"""A wait inside `.item()` and what it costs the device, drawn by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

import maiprof_nb
from tests.findings.asking import US, finding
from tests.tiny_traces import Event, kernel, launch, operator, python, session, step, text

RULE = "hidden-sync"


def item(*, stack: str = "") -> list[Event]:
    """Kernel until 1190; `.item()` waits for it until 1195; the next one starts at 1250."""
    args = {"Call stack": stack} if stack else {}
    return [
        launch(1, 1000), kernel(1010, 180, correlation=1),
        operator("aten::item", 1100, 100, **args),
        operator("aten::_local_scalar_dense", 1101, 98),
        launch(0, 1110, 85, name="cudaStreamSynchronize"),
        operator("aten::mm", 1200, 40), launch(2, 1238), kernel(1250, 150, correlation=2),
    ]  # fmt: skip


def test_idle_after_item_with_its_line() -> None:
    found = finding(session(python("train.py(12): train_step", 1000, 450), *item()), RULE)
    assert found.outcome == "found"
    # Gap 1190 to 1250: 10 us until .item() returns, 40 us in aten::mm before its launch is out.
    assert found.cost_ns == 50 * US
    assert found.share == pytest.approx(50 / 390)  # from 1010 to 1400
    assert "once" in found.title
    assert "aten::item at train.py(12): train_step" in found.title
    assert found.evidence[0]["waited_ns"] == 85 * US
    assert found.change == "1 line a place"


def test_line_of_old_traces_comes_from_the_stack_in_args(tmp_path: Path) -> None:
    path = tmp_path / "old.pt.trace.json"
    stack = "lib/python3.7/site-packages/torch/tensor.py(4): item;job/train.py(42): <module>"
    path.write_bytes(text(item(stack=stack)))
    found = finding(maiprof_nb.load(path), RULE)
    assert found.evidence[0]["line"] == "job/train.py(42): <module>"


def test_count_a_step() -> None:
    found = finding(session(step(1, 1000, 210), step(2, 1210, 200), *item()), RULE)
    assert "0.5 times a step" in found.title


def test_a_wait_with_work_behind_it_passes() -> None:
    queued = [launch(3, 1090), kernel(1190, 60, correlation=3)]
    found = finding(session(*item(), *queued), RULE)
    assert found.outcome == "passed"
    assert "85.0 µs in all" in found.title  # the host waited all the same


def test_a_copy_that_blocks_counts() -> None:
    events = item()
    events[4] = launch(0, 1110, 85, name="hipMemcpyWithStream")
    assert finding(session(*events), RULE).evidence[0]["call"] == "hipMemcpyWithStream"


def test_the_profilers_own_wait_does_not_count() -> None:
    events = [
        launch(1, 1000), kernel(1010, 180, correlation=1), operator("aten::mm", 1000, 10),
        launch(0, 1100, 100, name="cudaDeviceSynchronize"),
    ]  # fmt: skip
    found = finding(session(*events), RULE)
    assert (found.outcome, found.title) == ("passed", "The host never waits for the device.")


def test_without_runtime_calls_it_does_not_apply() -> None:
    assert finding(session(kernel(1010, 5)), RULE).outcome == "not-applicable"
