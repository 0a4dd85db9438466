"""Sums that must hold on every real log, each against the plainest way to count it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import maiprof_nb
from maiprof_nb.allocator import AllocatorModel, Segment
from maiprof_nb.analysis.active_memory import MemoryLog, memory_devices, memory_log
from maiprof_nb.analysis.allocator_state import allocator_history, living_segments, state_of
from maiprof_nb.analysis.fragmentation import fragmentation_of
from maiprof_nb.analysis.memory_peak import GROUPS, memory_peak
from maiprof_nb.analysis.memory_search import allocations_like, counted
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow
from tests.conftest import CORPUS
from tests.memory_by_hand import REAL

FIVE = [
    "cs336-charan/memory_snapshot.pickle.gz",
    "flexgen/1.3b_snapshot_a.pickle",  # a state without a log
    "octree-nca/inference2_peso_oct.pickle",
    "octree-nca/my_snapshot_5.pickle",
    "select-n/snapshot_llama_streams.pickle.gz",  # several streams, no times
]


def loaded(name: str) -> Session:
    path = CORPUS / "memory" / name
    if not path.exists():
        pytest.skip(f"no corpus at {CORPUS}: set MAIPROF_CORPUS")
    return maiprof_nb.load(path)


@pytest.mark.parametrize("name", REAL)
def test_every_grouping_of_the_peak_adds_up_to_it(name):
    session = loaded(name)
    for device in memory_devices(session):
        peak = memory_peak(session, device=device)
        for group in GROUPS:
            table = peak.by(group)
            assert table["size_bytes"].sum() == peak.peak_bytes, group
            assert (table["freed_bytes"] <= table["size_bytes"]).all()


@pytest.mark.parametrize("name", FIVE)
@pytest.mark.parametrize("query", ["forward", ">1MiB", "forward <=10MiB", "torch =512"])
def test_matches_are_those_of_a_loop_over_all(name, query):
    session = loaded(name)
    log = memory_log(session)
    frames = dict(zip(log.stacks["stack"], log.stacks["frames"].astype(str), strict=True))
    window = TimeWindow(
        log.span.start_ns + log.span.dur_ns // 3, log.span.start_ns + log.span.dur_ns // 2
    )
    found = allocations_like(session, log, query)
    inside = []
    for row, hit in zip(log.allocations.to_dict("records"), found, strict=True):
        text = "" if pd.isna(row["stack"]) else frames[row["stack"]]
        assert hit == all(_matches(word, row["size_bytes"], text) for word in query.split())
        ended = not pd.isna(row["end_ns"]) and row["end_ns"] < window.start_ns
        if hit and row["ts_ns"] <= window.end_ns and not ended:
            inside.append(row["size_bytes"])
    assert counted(log, found, window).in_window == (len(inside), sum(inside))


def _matches(word: str, size: int, text: str) -> bool:
    sizes = {">1MiB": size > 2**20, "<=10MiB": size <= 10 * 2**20, "=512": size == 512}
    return sizes[word] if word in sizes else word in text.lower()


@pytest.mark.parametrize("name", FIVE)
def test_the_largest_request_that_fits_does_and_one_byte_more_does_not(name):
    """Asked of the model of the allocator, which repeats every real request of these logs."""
    session = loaded(name)
    for device in memory_devices(session):
        history = allocator_history(session, device)
        for row in fragmentation_of(history, points=8).itertuples():
            state = state_of(history, row.state)
            free = state.loc[state["state"].eq("inactive"), "size_bytes"]
            assert row.unused_bytes == free.sum()
            assert row.largest_free_bytes == (free.max() if len(free) else 0)
            assert row.reserved_bytes == state["size_bytes"].sum()
            if row.fits_bytes:
                assert _without_a_new_segment(history, row.state, state, row.fits_bytes)
                assert not _without_a_new_segment(history, row.state, state, row.fits_bytes + 1)


def _without_a_new_segment(history: Any, number: int, state: pd.DataFrame, size: int) -> bool:
    """Whether any stream and pool serves the request out of what is reserved."""
    served = False
    for stream, pool_id in set(zip(state["stream"], state["pool_id"], strict=True)):
        model = _model(history, number, state)
        before = model.reserved_bytes
        model.place(size, stream, pool_id)
        served |= model.reserved_bytes == before
    return served


def _model(history: Any, number: int, state: pd.DataFrame) -> AllocatorModel:
    model = AllocatorModel(history.settings, first_address=2**52)
    used = state[state["state"].ne("inactive").to_numpy()]
    blocks: dict[int, list[tuple[int, int, int]]] = {}
    for row in used.itertuples():
        blocks.setdefault(row.segment_address, []).append((row.address, row.size_bytes, 0))
    for row in living_segments(history, number).itertuples():
        segment = Segment(row.address, row.size_bytes, row.stream, row.pool == "small")
        segment.pool_id, segment.expandable = row.pool_id, row.expandable
        model.adopt(segment, blocks.get(row.address, ()))
    return model


@pytest.mark.parametrize("name", FIVE)
def test_what_lives_at_each_state_makes_the_curve(name):
    """Lives counted one by one, at every state: no allocation is lost or counted twice."""
    for device in memory_devices(session := loaded(name)):
        log = memory_log(session, device)
        assert _summed(log).tolist() == log.allocated_bytes.tolist()


def _summed(log: MemoryLog) -> np.ndarray:
    change = np.zeros(len(log.ts_ns) + 1, dtype=np.int64)
    for row in log.allocations.itertuples():
        change[row.first_state] += row.size_bytes
        change[min(row.end_state, len(log.ts_ns))] -= row.size_bytes
    return np.cumsum(change)[:-1]
