"""Driver calls in the loop and segments that come and go."""

from __future__ import annotations

import pytest

from maiprof_nb import Session
from maiprof_nb.recording import Recording
from maiprof_nb.tables import SCHEMAS
from maiprof_nb.timebase import Clock
from tests.findings.asking import US, finding
from tests.tiny_traces import Event, kernel, launch, session, step

RULE = "allocator-churn"
MIB = 2**20


def three_steps(*events: Event) -> Session:
    """Steps of 1000 us; the device is idle for the first 500 us of each."""
    own = []
    for n in (1, 2, 3):
        own += [step(n, 1000 * n, 1000), launch(n, 1000 * n + 495)]
        own.append(kernel(1000 * n + 500, 500, correlation=n))
    return session(*own, *events)


def snapshot(*log: tuple[str, int]) -> Session:
    """An allocator's log of one event every 10 ns, without stacks."""
    count = len(log)
    nothing = [None] * count
    events = SCHEMAS["allocator_events"].frame(
        {
            "event": range(count), "ts_ns": [10 * i for i in range(count)], "device": [0] * count,
            "action": [action for action, _ in log], "address": nothing,
            "size_bytes": [size for _, size in log], "stream": [0] * count,
            "device_free_bytes": nothing, "stack": nothing,
        }
    )  # fmt: skip
    tables = {"allocator_events": events}
    clock = Clock(None, "none")
    return Session([Recording("memory.pickle", "snapshot", "cuda-snapshot", tables, clock)])


def test_calls_in_every_warm_step() -> None:
    found = finding(
        three_steps(
            launch(0, 1100, 300, name="cudaMalloc"),  # the first step may
            launch(0, 2100, 200, name="cudaMalloc"),
            launch(0, 2400, 200, name="cudaFree"),  # 2400 to 2500 in the gap, the rest in work
            launch(0, 3100, 50, name="cudaHostAlloc"),
        ),
        RULE,
    )
    assert found.outcome == "found"
    assert "1.5 calls a step" in found.title  # 3 calls in 2 warm steps
    assert found.cost_ns == (200 + 100 + 50) * US
    assert found.share == pytest.approx(350 / 3000)
    assert found.evidence[0]["call"] in ("cudaMalloc", "cudaFree")


def test_calls_of_the_first_step_pass() -> None:
    found = finding(three_steps(launch(0, 1100, 300, name="cudaMalloc")), RULE)
    assert found.outcome == "passed"


def test_stream_ordered_calls_and_one_late_short_call_pass() -> None:
    found = finding(
        three_steps(
            launch(0, 2100, 200, name="cudaMallocAsync"), launch(0, 3100, 5, name="cudaMalloc")
        ),
        RULE,
    )
    assert found.outcome == "passed"  # half a call a step, 5 us of 3000


def test_segments_given_back_and_taken_again() -> None:
    warm_up = [("segment_alloc", 20 * MIB), ("segment_free", 20 * MIB)]
    quiet = [("alloc", MIB)] * 6
    loop = [("segment_free", 4 * MIB), ("segment_alloc", 4 * MIB), ("segment_free", 2 * MIB)]
    found = finding(snapshot(*warm_up, *quiet, *loop), RULE)
    assert found.outcome == "found"
    # Only the second half of the log counts: 4 + 2 MiB returned, one segment taken after it.
    assert (found.size_bytes, found.cost_ns) == (6 * MIB, None)
    assert "2 segments (6.00 MiB) given back to the driver and 1 taken again" in found.title
    assert found.evidence[0]["size_bytes"] == 4 * MIB


def test_a_log_that_only_grows_passes() -> None:
    log = [("segment_alloc", MIB)] * 3 + [("alloc", MIB)] * 3 + [("segment_alloc", MIB)]
    assert finding(snapshot(*log), RULE).outcome == "passed"


def test_without_steps_or_a_log_it_does_not_apply() -> None:
    found = finding(session(launch(1, 1000), kernel(1010, 5, correlation=1)), RULE)
    assert found.outcome == "not-applicable"
