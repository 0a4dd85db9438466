"""Compilation in the third of three steps of 1000 us."""

from __future__ import annotations

import pytest

from maiprof_nb import Session
from tests.findings.asking import US, finding
from tests.tiny_traces import Event, annotation, operator, python, session, step

RULE = "recompilation"


def three_steps(*events: Event) -> Session:
    return session(*(step(n, 1000 * n, 1000) for n in (1, 2, 3)), *events)


def test_a_compilation_after_the_first_step() -> None:
    found = finding(
        three_steps(
            annotation("entire_frame_compile (dynamo_timed)", 1100, 500),  # the first: expected
            annotation("entire_frame_compile (dynamo_timed)", 3100, 300),
            annotation("backend_compile (dynamo_timed)", 3150, 200),  # inside the former
        ),
        RULE,
    )
    assert found.outcome == "found"
    assert found.title.startswith("1 compilation in 1 step after the first took 300 µs")
    assert found.cost_ns == 300 * US
    assert found.share == pytest.approx(0.1)
    assert found.evidence[0]["step"] == 3


def test_python_frames_of_the_compiler_count() -> None:
    frame = python("torch/_dynamo/convert_frame.py(715): _compile", 2100, 400)
    assert finding(three_steps(frame), RULE).cost_ns == 400 * US


def test_two_threads_at_once_cost_the_time_once() -> None:
    both = [annotation("x (dynamo_timed)", 2100, 400, tid=tid) for tid in (500, 501)]
    found = finding(three_steps(*both), RULE)
    assert found.cost_ns == 400 * US
    assert "2 compilations" in found.title


def test_compiled_code_that_runs_passes() -> None:
    found = finding(
        three_steps(
            annotation("entire_frame_compile (dynamo_timed)", 1100, 500),
            annotation("Torch-Compiled Region: 0/0", 2100, 500),
            operator("TorchDynamo Cache Lookup", 2090, 5),
        ),
        RULE,
    )
    assert found.outcome == "passed"
    assert found.title == "Nothing was compiled after the first of 3 recorded steps."


def test_one_step_does_not_tell() -> None:
    assert finding(session(step(1, 1000, 1000)), RULE).outcome == "not-applicable"
