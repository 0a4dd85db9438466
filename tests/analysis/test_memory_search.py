"""Search, groups and the axis by event, on a log of a few allocations made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from maiprof_nb.analysis.active_memory import memory_log, picture_of
from maiprof_nb.analysis.memory_by_event import by_event, events_of, times_of
from maiprof_nb.analysis.memory_categories import CATEGORIES, categories_of
from maiprof_nb.analysis.memory_groups import GROUPINGS, group_allocations
from maiprof_nb.analysis.memory_search import allocations_like, bytes_of, counted
from maiprof_nb.errors import UsageError
from maiprof_nb.loading import registry, sources
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow
from tests.analysis.made_memory_logs import LoggedAllocator

US = 1000
MIB = 2**20


@pytest.fixture
def made() -> Session:
    """Three of 2, 4 and 8 MiB by attention, mlp and attention; the first freed before the last.

    Event k happens at k us: each alloc is a segment event and an alloc; a free is two events.
    """
    allocator = LoggedAllocator()
    first = allocator.alloc(2 * MIB, name="attention")
    allocator.alloc(4 * MIB, stream=5, name="mlp")
    allocator.free(first)
    allocator.alloc(8 * MIB, name="attention")
    return allocator.session()


@pytest.mark.parametrize(
    ("query", "sizes"),
    [
        ("attention", [2, 8]),
        ("ATTENTION", [2, 8]),
        ("train.py", [2, 4, 8]),
        ("att >2MiB", [8]),
        (">=4MiB", [4, 8]),
        ("< 4MiB", [2]),
        ("=4194304", [4]),
        ("nothing", []),
        ("", [2, 4, 8]),
    ],
)
def test_words_and_sizes(made, query, sizes):
    log = memory_log(made)
    found = allocations_like(made, log, query)
    assert sorted((log.allocations["size_bytes"][found] // MIB).tolist()) == sizes


@pytest.mark.parametrize(
    ("text", "size"),
    [("512", 512), ("1k", 1024), ("1KB", 1000), ("1.5MiB", 1.5 * MIB), ("2gb", 2e9), ("3B", 3)],
)
def test_sizes_as_people_write_them(text, size):
    assert bytes_of(text) == size


@pytest.mark.parametrize("text", ["", "MiB", "10XB", "1e3", "-4"])
def test_no_size_is_an_error_that_shows_one(text):
    with pytest.raises(UsageError, match="no size") as caught:
        bytes_of(text)
    assert ">10MiB" in str(caught.value.remedy)


def test_matches_counted_by_hand(made):
    log = memory_log(made)
    found = counted(log, allocations_like(made, log, "attention"), log.span)
    assert found.all_ == (2, 10 * MIB)
    assert found.at_peak == (1, 8 * MIB)  # 4 + 8 MiB, after the first is freed
    assert found.peak_bytes == 12 * MIB
    freed_ns = int(log.allocations["end_ns"].dropna().iloc[0])
    later = TimeWindow(freed_ns + 1, log.span.end_ns)
    assert counted(log, allocations_like(made, log, "attention"), later).in_window == (1, 8 * MIB)


def test_groups_by_hand(made):
    log = memory_log(made)

    def names(by: str) -> list[str]:
        found = group_allocations(made, log, by)
        return [found.names[code] if code >= 0 else found.missing for code in found.code]

    order = (log.allocations["size_bytes"] // MIB).tolist()
    assert order == [2, 4, 8]
    assert names("stream") == ["default stream (0)", "stream 0x5", "default stream (0)"]
    assert names("module") == ["outside modules"] * 3
    assert names("age") == ["under 1 ms", "alive at the end", "alive at the end"]
    assert set(GROUPINGS) == {"stack", "category", "module", "phase", "stream", "age"}


def test_by_event_every_change_is_one_wide(made):
    log = memory_log(made)
    drawn = by_event(log)
    count = len(log.ts_ns)
    picture = picture_of(drawn, drawn.span, columns=count)
    assert picture.allocated_bytes.tolist() == log.allocated_bytes.tolist()
    lives = log.allocations
    assert picture.first_column.tolist() == lives["first_state"].tolist()
    assert picture.end_column.tolist() == np.minimum(lives["end_state"], count).tolist()
    assert drawn.device.axis == "order"


def test_events_and_times_lead_back_to_each_other(made):
    log = memory_log(made)
    for first in range(len(log.ts_ns) - 1):
        times = times_of(log, TimeWindow(first, first + 2))
        assert times.start_ns == log.ts_ns[first]
        again = events_of(log, times)
        assert log.ts_ns[again.start_ns] == times.start_ns
        assert again.start_ns >= first  # of several at one time the last
    assert times_of(log, TimeWindow(0, 10**9)).end_ns == log.ts_ns[-1]


def test_picture_by_event_has_the_same_peak_on_a_real_log(corpus):
    path = str(corpus / "memory" / "cs336-charan" / "memory_snapshot.pickle.gz")
    log = memory_log(Session([registry.read(sources.content(path)[0], path)]))
    drawn = by_event(log)
    for columns in (7, 1000):
        picture = picture_of(drawn, drawn.span, columns=columns, max_bands=200, rows=250)
        assert picture.peak_bytes == log.allocated_bytes.max()
        bands = np.zeros(columns)
        for first, end, size in zip(
            picture.first_column, picture.end_column, picture.size_bytes, strict=True
        ):
            bands[first:end] += size
        whole = bands + picture.merged.bytes_.sum(axis=0) + picture.rest_bytes
        assert np.allclose(whole, picture.allocated_bytes, atol=0)


def test_every_category_but_unknown_has_a_name(made):
    found = group_allocations(made, memory_log(made), "category")
    assert set(found.names) == set(CATEGORIES) - {"unknown"}
    told = categories_of(memory_log(made))["category"].astype(str)
    named = [found.names[code] if code >= 0 else "unknown" for code in found.code]
    assert named == told.tolist()
