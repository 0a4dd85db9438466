"""Holes over time and what would close them, on logs written from the allocator's model."""

from __future__ import annotations

from maiprof_nb import Session
from maiprof_nb.allocator import MIB, AllocatorSettings
from maiprof_nb.analysis.active_memory import memory_devices
from maiprof_nb.analysis.stranded_memory import (
    EXPANDABLE,
    ORDER,
    Remedy,
    StrandedMemory,
    holders,
    remedies,
    stranded_memory,
)
from maiprof_nb.timebase import TimeWindow
from tests.analysis.made_memory_logs import LoggedAllocator


def torn(settings: AllocatorSettings | None = None) -> LoggedAllocator:
    """Eight segments of 100 MiB, each left with one block of 10 MiB at its end, then 300 MiB."""
    job = LoggedAllocator(settings)
    large = [job.alloc(100 * MIB, name="large") for _ in range(8)]
    for address in large:
        job.free(address)
    for _ in range(8):
        large.append(job.alloc(90 * MIB, name="large"))
        job.alloc(10 * MIB, name="kept")
    for address in large[8:]:
        job.free(address)
    job.alloc(300 * MIB, name="late")
    return job


def of(session: Session) -> StrandedMemory:
    found = stranded_memory(session, memory_devices(session)[0])
    assert found is not None
    return found


def by_setting(session: Session) -> dict[str, Remedy]:
    _, tried = remedies(session, memory_devices(session)[0], of(session).end)
    return {one.setting: one for one in tried}


def test_the_end_the_peak_and_the_worst() -> None:
    found = of(torn().session())
    assert (found.end.stranded_bytes, found.end.holes) == (8 * 90 * MIB, 8)
    assert found.end.largest_hole_bytes == 90 * MIB
    assert (found.end.reserved_bytes, found.end.allocated_bytes) == (1100 * MIB, 380 * MIB)
    assert found.peak.allocated_bytes == 800 * MIB
    assert found.peak.stranded_bytes == 0
    assert found.worst.stranded_bytes == 8 * 90 * MIB


def test_cached_segments_are_not_stranded() -> None:
    # 8 segments, 8 blocks and 16 events of their frees, one a microsecond
    cached = torn().session().select(window=TimeWindow(0, 32_000))
    end = of(cached).end
    assert (end.stranded_bytes, end.cached_bytes, end.cached_segments) == (0, 800 * MIB, 8)


def test_who_holds_them() -> None:
    session = torn().session()
    found = holders(session, memory_devices(session)[0], of(session).end)
    assert found["held_bytes"].tolist() == [8 * 90 * MIB]
    assert found["blocks"].tolist() == [8]
    assert found["label"].iloc[0].startswith("kept")


def test_what_would_close_them() -> None:
    """Kept apart, 8 x 10 MiB fill their own segments; with pages, each block holds one or two."""
    freed = by_setting(torn().session())
    order = freed[ORDER]
    # the kept blocks come first, in segments of 10 MiB; all others go back or serve the 300 MiB
    assert (order.least_freed_bytes, order.most_freed_bytes) == (720 * MIB,) * 2
    pages = freed[EXPANDABLE]
    # a block of 10 MiB behind 90 MiB lies in one page of 20 MiB or across two: 10 to 30 MiB stay
    assert 720 * MIB - 8 * 30 * MIB <= pages.least_freed_bytes <= 720 * MIB - 8 * 10 * MIB


def test_a_log_too_long_is_not_replayed() -> None:
    session = torn().session()
    requests, tried = remedies(
        session, memory_devices(session)[0], of(session).end, most_requests=10
    )
    assert requests == 25
    assert tried == []


def test_expandable_segments_are_known_as_such() -> None:
    session = torn(AllocatorSettings(expandable=True)).session()
    assert of(session).expandable
    assert EXPANDABLE not in by_setting(session)
