"""What no public snapshot shows, made by the allocator's model: the truth is the model's own."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest

from maiprof_nb.allocator import DEFAULT_POOL, MIB, AllocatorSettings
from maiprof_nb.analysis._allocator_history import allocator_history
from maiprof_nb.analysis.active_memory import live_at, memory_devices, memory_log
from maiprof_nb.analysis.allocator_state import allocator_state, state_of
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.loading import registry
from maiprof_nb.session import Session
from tests.analysis.made_memory_logs import LoggedAllocator, snapshot_of

GRAPH = "(1, 0)"  # the private pool of a CUDA graph


def job(seed: int, *, expandable: bool = False, pools: bool = False) -> LoggedAllocator:
    """Random requests and frees, of which one in four completes much later than asked for."""
    chance = random.Random(seed)  # noqa: S311 - a seed, no secret
    allocator = LoggedAllocator(AllocatorSettings(expandable=expandable))
    live: list[int] = []
    waiting: list[int] = []
    for turn in range(400):
        if turn % 100 == 99:
            allocator.return_cached()
        elif len(waiting) > 5:
            allocator.complete_free(waiting.pop(0))
        elif len(live) > 20 or (live and chance.random() < 0.4):
            address = live.pop(chance.randrange(len(live)))
            if chance.random() < 0.25:
                allocator.request_free(address)
                waiting.append(address)
            else:
                allocator.free(address)
        else:
            pool = GRAPH if pools and chance.random() < 0.4 else DEFAULT_POOL
            size = int(2 ** chance.uniform(8, 24.5))
            live.append(allocator.alloc(size, stream=7 * (chance.random() < 0.3), pool=pool))
    assert waiting
    return allocator


def agrees(session: Session, allocator: LoggedAllocator, device: int = 0) -> None:
    """Every state known to the model, block for block; and the curve adds them up."""
    found = memory_devices(session)[device]
    history, log = allocator_history(session, found), memory_log(session, found)
    assert [note.code for _, note in session.notes] == []
    for events, truth in allocator.states.items():
        state = state_of(history, events)
        used = ~state["state"].eq("inactive")
        assert list(zip(state["address"], state["size_bytes"], used, strict=True)) == truth
        total = sum(size for _, size, in_use in truth if in_use)
        assert log.allocated_bytes[log.states_at(history.ts_ns[events])] == total
        assert log.reserved_bytes[log.states_at(history.ts_ns[events])] >= total


def test_private_pools_are_kept_apart():
    """Also where a segment of the pool is gone at the end, the log cannot say so (pool_id)."""
    allocator = job(1, pools=True)
    session = allocator.session()
    agrees(session, allocator)
    last = state_of(allocator_history(session), len(allocator.events))
    truth = {s.address: s.pool_id for s in allocator.segments.values()}
    assert {GRAPH, DEFAULT_POOL} <= set(truth.values())
    assert dict(zip(last["segment_address"], last["pool_id"], strict=True)) == truth


@pytest.mark.parametrize("expandable", [False, True], ids=["segments", "segment_map"])
def test_frees_that_complete_late(expandable):
    allocator = job(2, expandable=expandable)
    actions = {row["action"] for row in allocator.events}
    assert ("segment_map" in actions, "segment_unmap" in actions) == (expandable, expandable)
    session = allocator.session()
    agrees(session, allocator)
    history = allocator_history(session)
    asked: set[int] = set()
    for number, row in enumerate(allocator.events):
        asked |= {row["addr"]} if row["action"] == "free_requested" else set()
        asked -= {row["addr"]} if row["action"] in ("free_completed", "alloc") else set()
        if number % 10 == 0:
            state = state_of(history, number + 1)
            assert set(state.loc[state["state"].eq("pending_free"), "address"]) == asked
    last = state_of(history, history.last_state)
    assert set(last.loc[last["state"].eq("pending_free"), "address"]) == allocator.waiting


def test_several_devices_with_full_logs():
    """The same addresses on each, as processes' devices may have."""
    both = [job(3), job(4, pools=True)]
    session = snapshot_of(both, [one.events for one in both])
    assert [device.device for device in memory_devices(session)] == [0, 1]
    for number, allocator in enumerate(both):
        device = memory_devices(session)[number]
        history = allocator_history(session, device)
        for events, truth in list(allocator.states.items())[::7]:
            state = state_of(history, events)
            used = ~state["state"].eq("inactive")
            assert list(zip(state["address"], state["size_bytes"], used, strict=True)) == truth
        used = [size for _, size, in_use in allocator.now() if in_use]
        assert memory_log(session, device).allocated_bytes[-1] == sum(used)


@pytest.mark.parametrize("skip", [100, 300, 500])
def test_a_ring_that_overflowed(skip):
    """Amounts are right from the first event kept, whatever was overwritten."""
    allocator = job(5)
    session = allocator.session(skip)
    log = memory_log(session)
    history = allocator_history(session)
    for events, truth in allocator.states.items():
        if events > skip:
            asked = sum(block_of(history, events - skip))
            known = sum(size for _, size, in_use in truth if in_use)
            at = log.allocated_bytes[log.states_at(history.ts_ns[events - skip])]
            assert asked == at
            assert known - 2 * MIB <= at <= known  # a large block from before may be larger
    assert log.allocated_bytes.min() >= 0


def block_of(history, state):
    lives = history.blocks
    living = lives["first_state"].le(state) & lives["end_state"].gt(state)
    return lives.loc[living, "size_bytes"].tolist()


@pytest.mark.parametrize(
    "without", ["free_requested", "free_completed", "snapshot", "oom"], ids=str
)
def test_actions_that_were_not_recorded(without):
    """``skip_actions``: without one of the two frees the other ends a life."""
    allocator = LoggedAllocator()
    live = [allocator.alloc(size) for size in (700, 3 * MIB, 30 * MIB)]
    allocator.free(live[1])
    allocator.alloc(1000)
    log = memory_log(allocator.session(without=(without,)))
    whole = memory_log(allocator.session())
    assert log.allocated_bytes.tolist() == whole.allocated_bytes.tolist()
    assert log.reserved_bytes.tolist() == whole.reserved_bytes.tolist()


def test_segment_events_that_were_not_recorded():
    """What was reserved before the end is unknown then, and not below what was allocated."""
    allocator = LoggedAllocator()
    big = allocator.alloc(30 * MIB)
    allocator.free(big)
    allocator.return_cached()
    allocator.alloc(1000)
    session = allocator.session(without=("segment_alloc", "segment_free"))
    log = memory_log(session)
    assert log.allocated_bytes.tolist() == [0, 30 * MIB, 0, 1024]
    assert log.reserved_bytes is None
    with pytest.raises(NotAnswerableError, match="does not fit"):
        state_of(allocator_history(session), 1)


def test_allocs_that_were_not_recorded_are_told():
    allocator = LoggedAllocator()
    for _ in range(3):
        allocator.free(allocator.alloc(1000))
    session = allocator.session(without=("alloc",))
    assert {"allocs-missing"} <= {note.code for _, note in session.notes}
    assert memory_log(session).allocated_bytes.min() >= 0


def test_a_bare_list_of_segments():
    """``torch.cuda.memory_snapshot()`` pickled: one moment, no log."""
    allocator = job(6, pools=True)
    content = pickle.dumps(allocator.parts(), protocol=2)
    session = Session([registry.read(content, "bare.pickle")])
    (device,) = memory_devices(session)
    assert device.axis == "state"
    truth = allocator.now()
    state = allocator_state(session, 0)
    used = ~state["state"].eq("inactive")
    assert list(zip(state["address"], state["size_bytes"], used, strict=True)) == truth
    log = memory_log(session)
    assert log.allocated_bytes.tolist() == [sum(size for _, size, in_use in truth if in_use)]
    assert log.reserved_bytes.tolist() == [allocator.reserved_bytes]
    assert live_at(session, 0)["size_bytes"].sum() == log.allocated_bytes[0]
    assert np.isin(["f (/job/train.py:1)"], live_at(session, 0)["label"]).all()
