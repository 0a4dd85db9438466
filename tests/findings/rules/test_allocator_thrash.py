"""Segments that go and come in steady state."""

from __future__ import annotations

from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow
from tests.analysis.made_memory_logs import LoggedAllocator
from tests.findings.asking import finding
from tests.findings.tiny_memory import FORWARD, MIB, Job
from tests.tiny_traces import kernel, session

RULE = "allocator-thrash"


def looping(*sender: str, rounds: int = 12) -> Job:
    job = Job()
    job.take(MIB, FORWARD)
    for _ in range(40):  # the log's first half
        job.give(job.take(MIB, FORWARD))
    for _ in range(rounds):
        job.segment("segment_free", 20 * MIB, *sender)
        job.segment("segment_alloc", 20 * MIB, FORWARD)
    return job


def test_segments_given_back_by_the_allocator() -> None:
    found = finding(looping(FORWARD).session(), RULE)
    assert (found.outcome, found.severity) == ("found", "medium")
    assert found.size_bytes == 12 * 20 * MIB
    assert "12 segments (240 MiB) are given back by the allocator itself" in found.title
    assert "12 taken again" in found.title
    assert "expandable_segments" in found.advice


def test_segments_given_back_by_a_call() -> None:
    found = finding(looping("empty_cache (/torch/cuda/memory.py:170)").session(), RULE)
    assert "by empty_cache" in found.title
    assert found.advice == "Remove torch.cuda.empty_cache() from the loop."


def test_one_clean_up_passes() -> None:
    assert finding(looping(FORWARD, rounds=2).session(), RULE).outcome == "passed"


def test_a_selected_window_is_judged_alone() -> None:
    # 121 events of warm-up, then 24 of thrash, one a microsecond
    whole = looping(FORWARD).session()
    assert finding(whole.select(window=TimeWindow(0, 120_000)), RULE).outcome == "passed"
    late = whole.select(window=TimeWindow(121_000, 145_000))
    assert finding(late, RULE).outcome == "found"


def test_without_a_log_it_does_not_apply() -> None:
    assert finding(session(kernel(1000, 5)), RULE).outcome == "not-applicable"


def full() -> Session:
    """60 of 100 MiB in turn on two streams, which share no cache: the other's has to go first."""
    allocator = LoggedAllocator(limit_bytes=100 * MIB)
    for turn in range(40):
        allocator.free(allocator.alloc(60 * MIB, stream=7 * (turn % 2)))
    return allocator.session()


def test_a_full_device_gives_its_cache_back_itself() -> None:
    """No stack tells who sent it back; a new segment that had no room follows each time."""
    found = finding(full(), RULE)
    assert "by the allocator itself (apparently to make room on a full device)" in found.title
    assert "empty_cache" not in found.advice
    assert "lower the peak" in found.advice


def test_one_fault_is_found_once() -> None:
    """What goes round and round is thrash; the other rule points here."""
    found = finding(full(), "allocator-churn")
    assert found.outcome == "passed"
    assert "see allocator-thrash" in found.title
