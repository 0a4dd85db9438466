"""Requests that failed, and memory without room."""

from __future__ import annotations

from maiprof_nb import Session
from maiprof_nb.timebase import TimeWindow
from tests.findings.asking import finding
from tests.findings.tiny_memory import FORWARD, GIB, MIB, Job, block, hole, segment, snapshot
from tests.shipped_samples import loaded, truth
from tests.tiny_traces import kernel, session

RULE = "oom"


def test_too_much_is_live() -> None:
    job = Job()
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
    # a block of 1 MiB beside each hole; nobody recorded who made them
    event, holder = found.evidence[:2]
    assert (event["fits_after_release_bytes"], event["cached_bytes"]) == (99 * MIB, 0)
    assert event["fits_after_defragmentation_bytes"] == 347 * MIB
    assert (holder["held_bytes"], holder["blocks"]) == (297 * MIB, 3)
    assert "3 blocks (3.00 MiB) of no stack recorded" in found.title


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
    assert "the largest free block at the end 1.00 MiB" in found.title


def test_the_sample_that_fails_in_pieces() -> None:
    """Every figure is the one the simulator knew when the request failed."""
    known = truth("oom")
    found = finding(loaded("oom"), RULE)
    assert (found.outcome, found.severity) == ("found", "high")
    assert found.size_bytes == known["requested_bytes"]
    event, holder = found.evidence[:2]
    assert event["largest_free_bytes"] == known["largest_hole_bytes"]
    same = (
        "requested_bytes", "device_free_bytes", "reserved_bytes", "allocated_bytes",
        "fits_after_defragmentation_bytes",
    )  # fmt: skip
    assert {name: event[name] for name in same} == {name: known[name] for name in same}
    # nothing was cached: the driver's 64 MiB and the largest hole are all there is in one piece
    assert event["cached_bytes"] == 0
    assert event["fits_after_release_bytes"] == known["largest_hole_bytes"]
    assert event["line"] == "block (warmup/model.py:29)"
    assert holder["line"] == "remember (warmup/report.py:12)"
    assert known["held_open_by"][0] == "warmup/report.py:12 remember"
    assert holder["blocks"] == known["blocks_of_it"]
    assert holder["held_bytes"] == known["free_in_holes_bytes"]
    assert "the same requests and the one that failed fit in the 7.56 GiB" in found.advice


def test_a_window_before_the_failure_passes() -> None:
    whole = loaded("oom")
    early = whole.select(window=TimeWindow(0, whole.span.end_ns // 2))
    assert finding(early, RULE).outcome == "passed"


def test_little_left_on_the_device_is_nearly_full() -> None:
    """9.8 of 10 GiB reserved, 9.5 of them in use; the trace states the device's size."""
    state = [segment(1 << 40, block(9 * GIB + 512 * MIB, FORWARD), hole(300 * MIB))]
    device = [{"id": 0, "name": "GPU", "totalGlobalMem": 10 * GIB}]
    trace = session(kernel(1000, 5), deviceProperties=device)
    found = finding(Session([*trace.recordings, *snapshot(state).recordings]), RULE)
    assert (found.outcome, found.severity) == ("found", "medium")
    assert "212 MiB of the device's 10.0 GiB are left beyond it" in found.title
    assert found.evidence[0]["room_bytes"] == 300 * MIB
    large = session(kernel(1000, 5), deviceProperties=[device[0] | {"totalGlobalMem": 80 * GIB}])
    roomy = Session([*large.recordings, *snapshot(state).recordings])
    assert finding(roomy, RULE).outcome == "passed"


def test_room_passes() -> None:
    state = [segment(1 << 40, block(2 * GIB), hole(GIB))]
    assert finding(snapshot(state), RULE).outcome == "passed"


def test_without_a_snapshot_it_does_not_apply() -> None:
    assert finding(session(kernel(1000, 5)), RULE).outcome == "not-applicable"


def test_a_state_without_a_log_knows_of_no_failure() -> None:
    found = finding(snapshot([segment(1 << 40, block(2 * GIB), hole(GIB))]), RULE)
    assert found.title.startswith("Without a log no failed request is known; 2.00 GiB of 3.00 GiB")
    assert "at the peak" not in found.title
