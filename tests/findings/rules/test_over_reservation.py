"""Reserved against allocated."""

from __future__ import annotations

from tests.findings.asking import finding
from tests.findings.tiny_memory import FORWARD, GIB, MIB, Job, block, hole, segment, snapshot
from tests.tiny_traces import kernel, session

RULE = "over-reservation"


def test_mostly_cached() -> None:
    found = finding(snapshot([segment(1 << 32, block(GIB)), segment(1 << 34, hole(3 * GIB))]), RULE)
    assert (found.outcome, found.severity) == ("found", "medium")
    assert found.size_bytes == 3 * GIB
    assert "75.0 % of 4.00 GiB reserved is unused" in found.title
    assert "3.00 GiB of it in 1 wholly free segments" in found.title


def test_a_cache_that_was_needed_is_low() -> None:
    job = Job()
    job.give(job.take(3 * GIB, FORWARD))
    found = finding(job.session(segment(1 << 40, hole(3 * GIB))), RULE)
    assert (found.outcome, found.severity) == ("found", "low")
    assert "at the peak of the log 100.0 % are in use" in found.title


def test_a_fifth_that_was_never_needed() -> None:
    state = [segment(1 << 32, block(3 * GIB)), segment(1 << 34, hole(GIB))]
    assert finding(snapshot(state), RULE).outcome == "found"


def test_small_or_used_memory_passes() -> None:
    small = [segment(1 << 32, block(MIB)), segment(1 << 34, hole(400 * MIB))]
    assert finding(snapshot(small), RULE).outcome == "passed"
    used = [segment(1 << 32, block(6 * GIB)), segment(1 << 34, hole(GIB))]
    assert finding(snapshot(used), RULE).outcome == "passed"


def test_without_a_snapshot_it_does_not_apply() -> None:
    assert finding(session(kernel(1000, 5)), RULE).outcome == "not-applicable"
