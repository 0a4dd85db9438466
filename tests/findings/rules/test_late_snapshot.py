"""Logs that begin after the memory was taken, and rings that ran over."""

from __future__ import annotations

from maiprof_nb.timebase import TimeWindow
from tests.findings.asking import finding
from tests.findings.tiny_memory import FORWARD, MIB, Job, block, segment, snapshot

RULE = "late-snapshot"


def test_most_is_older_than_the_log() -> None:
    job = Job()
    job.before(60 * MIB)
    job.give(job.take(40 * MIB, FORWARD))
    found = finding(job.session(), RULE)
    assert (found.outcome, found.severity) == ("found", "low")
    assert found.size_bytes == 60 * MIB
    assert "60.0 MiB of the 100 MiB live at the peak (60.0 %)" in found.title
    assert "60.0 MiB of it without a stack" in found.title
    assert found.evidence[1]["size_bytes"] == 60 * MIB


def test_a_selected_window_does_not_make_a_log_begin_later() -> None:
    job = Job()
    job.take(60 * MIB, FORWARD)
    job.give(job.take(40 * MIB, FORWARD))
    late = job.session().select(window=TimeWindow(1_000, 3_000))
    assert finding(late, RULE).outcome == "passed"


def test_a_full_ring() -> None:
    job = Job()
    job.before(MIB)
    job.take(9 * MIB, FORWARD)
    for _ in range(3_333):  # three events each
        job.give(job.take(MIB, FORWARD))
    found = finding(job.session(), RULE)
    assert (found.outcome, found.severity) == ("found", "medium")
    assert "its ring of 10\N{NARROW NO-BREAK SPACE}000 entries was full" in found.title
    assert "max_entries" in found.advice


def test_a_log_from_the_beginning_passes() -> None:
    job = Job()
    job.take(60 * MIB, FORWARD)
    job.give(job.take(40 * MIB, FORWARD))
    assert finding(job.session(), RULE).outcome == "passed"


def test_a_final_state_does_not_apply() -> None:
    found = finding(snapshot([segment(1 << 32, block(MIB))]), RULE)
    assert found.outcome == "not-applicable"
    assert "_record_memory_history" in found.reason
