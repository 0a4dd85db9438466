"""Free bytes between live blocks."""

from __future__ import annotations

from tests.findings.asking import finding
from tests.findings.tiny_memory import KEPT, MIB, block, hole, segment, snapshot
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
    assert "20 holes between live blocks, the largest 30.0 MiB" in found.title
    state, worst = found.evidence[:2]
    assert (state["cached_bytes"], state["largest_free_bytes"]) == (200 * MIB, 200 * MIB)
    assert (worst["stranded_bytes"], worst["blocks"], worst["line"]) == (50 * MIB, 2, KEPT)
    assert "expandable_segments" in found.advice


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


def test_without_a_snapshot_it_does_not_apply() -> None:
    assert finding(session(kernel(1000, 5)), RULE).outcome == "not-applicable"
