"""Requests that failed, and memory without room."""

from __future__ import annotations

from tests.findings.asking import finding
from tests.findings.tiny_memory import FORWARD, GIB, MIB, Job, block, hole, segment, snapshot
from tests.tiny_traces import kernel, session

RULE = "oom"


def test_too_much_is_live() -> None:
    job = Job()
    job.segment("segment_alloc", 900 * MIB)
    job.take(900 * MIB, FORWARD)
    job.oom(300 * MIB, 50 * MIB, FORWARD)
    found = finding(job.session(), RULE)
    assert (found.outcome, found.severity, found.size_bytes) == ("found", "high", 300 * MIB)
    assert "A request for 300 MiB failed: 50.0 MiB free on the device" in found.title
    assert "900 MiB of 900 MiB reserved in use" in found.title
    assert "250 MiB too much is live" in found.title  # 300 - 50 - 0
    event, largest = found.evidence[:2]
    assert (event["requested_bytes"], event["line"]) == (300 * MIB, FORWARD)
    assert (largest["line"], largest["size_bytes"]) == (FORWARD, 900 * MIB)


def test_enough_is_free_but_in_pieces() -> None:
    job = Job()
    job.take(100 * MIB, FORWARD)
    job.oom(300 * MIB, 50 * MIB, FORWARD)
    free = [segment(i << 40, block(MIB), hole(99 * MIB)) for i in (1, 2, 3)]
    found = finding(job.session(*free), RULE)
    # 50 free on the device and 3 x 99 within what is reserved
    assert "the 347 MiB free would serve it if they were in one piece" in found.title
    assert "the largest free block 99.0 MiB" in found.title
    assert "expandable_segments" in found.advice
    assert found.evidence[-1]["table"] == "segments"


def test_of_several_the_largest_is_told() -> None:
    job = Job()
    job.take(900 * MIB, FORWARD)
    job.oom(300 * MIB, 50 * MIB)
    job.oom(200 * MIB, 50 * MIB)
    assert "300 MiB failed (the largest of 2)" in finding(job.session(), RULE).title


def test_nearly_full() -> None:
    state = [segment(1 << 40, block(2 * GIB, FORWARD), hole(MIB))]
    found = finding(snapshot(state), RULE)
    assert (found.outcome, found.severity) == ("found", "medium")
    assert "99.95 %" in found.title  # 2048 of 2049 MiB
    assert "the largest free block is 1.00 MiB" in found.title


def test_room_passes() -> None:
    state = [segment(1 << 40, block(2 * GIB), hole(GIB))]
    assert finding(snapshot(state), RULE).outcome == "passed"


def test_without_a_snapshot_it_does_not_apply() -> None:
    assert finding(session(kernel(1000, 5)), RULE).outcome == "not-applicable"
