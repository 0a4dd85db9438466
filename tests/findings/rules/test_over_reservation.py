"""Reserved against allocated."""

from __future__ import annotations

from maiprof_nb.timebase import TimeWindow
from tests.analysis.made_memory_logs import LoggedAllocator
from tests.findings.asking import finding
from tests.findings.tiny_memory import FORWARD, GIB, MIB, Job, block, hole, segment, snapshot
from tests.shipped_samples import loaded, truth
from tests.tiny_traces import kernel, session

RULE = "over-reservation"


def test_mostly_cached() -> None:
    found = finding(snapshot([segment(1 << 32, block(GIB)), segment(1 << 34, hole(3 * GIB))]), RULE)
    assert (found.outcome, found.severity) == ("found", "medium")
    assert found.size_bytes == 3 * GIB
    assert "75.0 % of 4.00 GiB reserved is unused" in found.title
    assert "3.00 GiB of it in 1 wholly free segment, which" in found.title


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


def test_what_lies_between_live_blocks_is_no_cache() -> None:
    found = finding(loaded("oom"), RULE)
    assert found.outcome == "found"
    assert found.evidence[0]["stranded_bytes"] == truth("oom")["free_in_holes_bytes"]
    assert "see fragmentation" in found.advice


def test_the_end_of_a_window_is_judged() -> None:
    job = LoggedAllocator()
    whole_step = [job.alloc(GIB) for _ in range(3)]
    for address in whole_step:
        job.free(address)
    whole = job.session()
    assert finding(whole, RULE).outcome == "found"  # 3 of 3 GiB, once in use
    full = whole.select(window=TimeWindow(0, 6_000))  # six events, a microsecond each
    assert finding(full, RULE).title.startswith("0.0 % of 3.00 GiB reserved is unused")


def test_without_a_snapshot_it_does_not_apply() -> None:
    assert finding(session(kernel(1000, 5)), RULE).outcome == "not-applicable"


def test_a_state_without_a_log_has_no_peak() -> None:
    found = finding(snapshot([segment(1 << 40, block(GIB)), segment(1 << 41, hole(3 * GIB))]), RULE)
    assert found.outcome == "found"
    assert "at the peak" not in found.title
