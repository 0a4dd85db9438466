"""Free bytes between live blocks."""

from __future__ import annotations

from maiprof_nb.timebase import TimeWindow
from tests.findings.asking import finding
from tests.findings.tiny_memory import KEPT, MIB, block, hole, segment, snapshot
from tests.shipped_samples import loaded, truth
from tests.tiny_traces import kernel, session

RULE = "fragmentation"


def test_many_holes() -> None:
    torn = [
        segment(i << 32, block(60 * MIB, KEPT), hole(30 * MIB), block(10 * MIB), hole(20 * MIB))
        for i in range(1, 11)
    ]
    found = finding(snapshot([*torn, segment(99 << 32, hole(200 * MIB))]), RULE)
    assert (found.outcome, found.severity) == ("found", "high")
    assert found.size_bytes == 500 * MIB  # 10 x (30 + 20); the wholly free segment is none of it
    assert "35.7 % of 1.37 GiB reserved" in found.title  # 500 of 1400 MiB
    assert "20 holes between live blocks at the end, the largest 30.0 MiB" in found.title
    state, one, other = found.evidence
    assert (state["cached_bytes"], state["holes"]) == (200 * MIB, 20)
    # [60 kept][30 hole][10][20 hole]: half of the 30 to each side, the 20 to the block before it
    assert (one["held_bytes"], one["line"]) == (10 * (15 + 20) * MIB, "no stack recorded")
    assert (other["held_bytes"], other["blocks"], other["line"]) == (10 * 15 * MIB, 10, KEPT)
    assert "expandable_segments" in found.advice
    assert "no requests to replay" in found.advice


def test_one_large_hole_still_serves() -> None:
    state = [segment(1 << 32, block(MIB), hole(800 * MIB)), segment(2 << 32, block(MIB), hole(MIB))]
    assert finding(snapshot(state), RULE).outcome == "passed"


def test_full_segments_pass() -> None:
    found = finding(snapshot([segment(1 << 32, block(900 * MIB))]), RULE)
    assert found.outcome == "passed"
    assert "0 holes" in found.title


def test_expandable_segments_get_other_advice() -> None:
    parts = [part for _ in range(10) for part in (block(30 * MIB), hole(30 * MIB))]
    found = finding(snapshot([segment(1 << 32, *parts, expandable=True)]), RULE)
    assert found.outcome == "found"
    assert "expandable already" in found.advice


def test_the_sample_torn_by_kept_tensors() -> None:
    """How much, who, and what would give it back: the simulator's own sums."""
    known = truth("oom")
    found = finding(loaded("oom"), RULE)
    assert (found.outcome, found.severity) == ("found", "high")
    assert found.size_bytes == known["free_in_holes_bytes"]
    state, holder, *tried = found.evidence
    assert (state["holes"], state["cached_bytes"]) == (known["holes"], 0)
    assert (holder["line"], holder["blocks"]) == ("remember (warmup/report.py:12)", 96)
    assert holder["held_bytes"] == known["free_in_holes_bytes"]
    freed = {row["setting"]: row["least_freed_bytes"] for row in tried}
    # apart from the rest, the kept blocks leave only the rounding of segments to be stranded
    assert known["free_in_holes_bytes"] - freed["long-lived first"] < 100 * MIB
    # pages of 20 MiB that hold one of 96 blocks of 6 MiB stay: less than 14 MiB beside each
    assert known["free_in_holes_bytes"] - freed["expandable_segments:True"] < 96 * 14 * MIB
    assert freed["expandable_segments:True"] > 0.9 * known["free_in_holes_bytes"]
    assert all((row["requests"], row["same_place"]) == (527, 527) for row in tried)
    assert "garbage_collection_threshold frees none of it" in found.advice


def test_a_window_before_the_holes_passes() -> None:
    early = loaded("oom").select(window=TimeWindow(0, 40_000_000))  # the first step
    assert finding(early, RULE).outcome == "passed"


def test_without_a_snapshot_it_does_not_apply() -> None:
    assert finding(session(kernel(1000, 5)), RULE).outcome == "not-applicable"
