"""Who made an allocation: traces and snapshots of a few events, and the simulated job's truth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from maiprof_nb.analysis._windowed_log import cut
from maiprof_nb.analysis.active_memory import memory_devices, memory_log
from maiprof_nb.analysis.allocation_makers import (
    allocation_makers,
    innermost_at,
    maker,
    makers_of,
)
from maiprof_nb.analysis.allocations_during import (
    allocations_during,
    allocations_in,
    made_by_stack,
)
from maiprof_nb.recording import Recording
from maiprof_nb.session import Session
from maiprof_nb.tables import SCHEMAS
from maiprof_nb.timebase import Clock, TimeWindow
from tests.shipped_samples import loaded
from tests.tiny_traces import AUTOGRAD, MAIN, Event, annotation, kernel, launch, operator, python
from tests.tiny_traces import recording as trace
from tests.tiny_traces import session as traced

US = 1000
EPOCH_NS = 1_700_000_000_000_000_000


def memory(ts: float, size: int, address: int, *, tid: int = MAIN, total: int = 0) -> Event:
    """A `[memory]` instant of the host's allocator."""
    args = {
        "Device Type": 0,
        "Device Id": -1,
        "Addr": address,
        "Bytes": size,
        "Total Allocated": total,
        "Total Reserved": 0,
    }
    return {
        "ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]",
        "pid": 500, "tid": tid, "ts": ts, "args": args,
    }  # fmt: skip


@pytest.fixture
def host() -> Session:
    """Two threads with an operator each at the same time; what is freed and what stays.

    main:      step 3 from 0 to 100: range "work" 5-60 with add 10-30 (empty 12-15 in it)
    autograd:  MulBackward 10-40
    memory:    a, main at 13, freed at 50; b, autograd at 13, freed at 35; c, main at 55, stays;
               d, main at 90, stays
    """
    return traced(
        annotation("ProfilerStep#3", 0, 100),
        annotation("work", 5, 55),
        python("nn.Module: Linear_0", 9, 22),
        operator("aten::add", 10, 20),
        operator("aten::empty", 12, 3),
        operator("MulBackward", 10, 30, tid=AUTOGRAD),
        memory(13, 100, 1, total=100),
        memory(13, 200, 2, tid=AUTOGRAD, total=300),
        memory(35, -200, 2, tid=AUTOGRAD, total=100),
        memory(50, -100, 1, total=0),
        memory(55, 400, 3, total=400),
        memory(90, 800, 4, total=1200),
    )


def test_the_operator_of_the_same_thread(host):
    found = allocation_makers(host)
    assert found["operator"].fillna("").tolist() == ["aten::empty", "MulBackward", "", ""]
    assert found["candidates"].tolist() == [1, 1, 0, 0]
    assert not found["clock_unsure"].any()
    assert found["module"].fillna("").tolist() == ["Linear_0", "", "", ""]
    assert found["phase"].tolist()[:2] == ["forward", "backward"]
    assert found["step"].tolist() == [3, 3, 3, 3]


def test_an_id_finds_its_maker_and_no_two_devices_share_one(host):
    ids = allocation_makers(host)["allocation"]
    one = maker(host, 0, int(ids[1]))
    assert one is not None
    assert one["operator"] == "MulBackward"
    assert maker(host, 0, int(ids[2])) is None  # no operator ran
    assert maker(host, 1, int(ids[1])) is None
    events = host.recordings[0].table("memory_events")
    assert set(ids) <= set(events["event"])  # the event's own id, whatever the device


def test_a_part_of_a_log_has_makers_of_its_own(host):
    """Also where those of the whole log are known: from 20 on, a and b are older than the log."""
    whole = memory_log(host)
    assert makers_of(host, whole)["operator"].notna().tolist() == [True, True, False, False]
    part = cut(whole, TimeWindow(20 * US, 60 * US))
    assert part is not None
    assert part.allocations["size_bytes"].tolist() == [100, 200, 400]
    found = makers_of(host, part)
    assert found["allocation"].tolist() == part.allocations["allocation"].tolist()
    assert found["operator"].isna().all()
    assert found["step"].fillna(0).tolist() == [0, 0, 3]


@pytest.mark.parametrize(
    ("chosen", "sizes", "kept"),
    [
        ({"table": "operators", "name": "aten::add"}, [100], [100]),  # freed at 50, after 30
        ({"table": "operators", "name": "MulBackward"}, [200], []),  # freed at 35, within 40
        ({"table": "operators", "name": "work"}, [100, 200, 400], [400]),  # a range: all threads
        ({"table": "modules", "name": "Linear_0"}, [100, 200], [100, 200]),  # ends at 31
        ({"table": "operators", "name": "ProfilerStep*"}, [100, 200, 400, 800], [400, 800]),
        ({"table": "operators", "name": "aten::mm"}, [], []),
    ],
)
def test_made_while_it_ran_by_hand(host, chosen, sizes, kept):
    log = memory_log(host)
    found = allocations_during(host, log, **chosen)
    size = log.allocations["size_bytes"]
    assert sorted(size[found.made]) == sizes
    assert sorted(size[found.outlived]) == kept


def test_one_step_by_its_row_and_other_tables(host):
    log = memory_log(host)
    row = int(host.table("steps")["event"].iloc[0])
    assert allocations_during(host, log, "steps", row=row).made.all()
    assert allocations_during(host, log, "blocks", name="x") is None


def test_of_a_kernel_the_operator_that_launched_it():
    session = traced(
        operator("aten::mm", 0, 10, **{"External id": 1}),
        launch(7, 2),
        kernel(20, 5, name="gemm", correlation=7),
        memory(1, 512, 1, total=512),
        memory(30, 512, 2, total=1024),
    )
    found = allocations_during(session, memory_log(session), "kernels", name="gemm")
    assert found.made.tolist() == [True, False]
    assert found.outlived.tolist() == [True, False]


def test_made_in_a_time_by_stack(host):
    log = memory_log(host)
    found = allocations_in(log, TimeWindow(10 * US, 60 * US))
    table = made_by_stack(log, found)
    # 13 and 55 us; of them the one of 55 us is live at 60 us
    assert table["size_bytes"].sum() == 700
    assert table["kept_bytes"].sum() == 400
    assert table["size_bytes"].is_monotonic_decreasing


def test_without_threads_the_last_to_start_is_a_guess_that_says_so(snapshot):
    base = {"baseTimeNanoseconds": EPOCH_NS}
    running = trace(
        operator("aten::add", 0, 100),
        operator("MulBackward", 10, 50, tid=AUTOGRAD),
        **base,
    )
    session = Session([running, snapshot])
    device = next(d for d in memory_devices(session) if d.kind == "snapshot")
    found = allocation_makers(session, device)
    # made at 5, 20 and 80 us
    assert found["operator"].tolist() == ["aten::add", "MulBackward", "aten::add"]
    assert found["candidates"].tolist() == [1, 2, 1]
    assert not found["clock_unsure"].any()  # one microsecond, as the log states it
    blurred = session.placed({1: 0}, uncertainty_ns=8 * US)  # the first is 5 us behind the start
    device = next(d for d in memory_devices(blurred) if d.kind == "snapshot")
    assert allocation_makers(blurred, device)["clock_unsure"].tolist() == [True, False, False]


@pytest.fixture
def snapshot() -> Recording:
    count, at = 3, [5 * US, 20 * US, 80 * US]

    def table(name: str, **columns: Any) -> Any:
        empty = SCHEMAS[name].empty()
        return SCHEMAS[name].frame({c: columns.get(c, [None] * count) for c in empty})

    common = {
        "device": [0] * count,
        "address": range(count),
        "size_bytes": [512] * count,
        "stream": [0] * count,
    }
    events = table(
        "allocator_events", event=range(count), ts_ns=at, action=["alloc"] * count,
        **common,
    )  # fmt: skip
    lives = table(
        "allocations", allocation=range(count), ts_ns=at, alloc_event=range(count),
        before_log=[False] * count, **common,
    )  # fmt: skip
    tables = {"allocator_events": events, "allocations": lives}
    clock = Clock(EPOCH_NS, "time_us of the events", 1000)
    return Recording("memory.pickle", "snapshot", "cuda-memory-snapshot", tables, clock, None)


def test_innermost_as_a_plain_loop_finds_it():
    rng = np.random.default_rng(3)
    parts = [(0, 1000)]  # nested at random, as calls of one thread are
    for _ in range(300):
        low, high = parts[rng.integers(len(parts))]
        if high - low > 2:
            edge = np.sort(rng.integers(low, high + 1, 2))
            inside = [p for p in parts if p[0] < edge[1] and p[1] > edge[0]]
            if all((p[0] <= edge[0] and edge[1] <= p[1]) or
                   (edge[0] <= p[0] and p[1] <= edge[1]) for p in inside):  # fmt: skip
                parts.append((int(edge[0]), int(edge[1])))
    start, end = np.array(parts, dtype=np.int64).T
    at = np.arange(-5, 1010, dtype=np.int64)
    found = innermost_at(start, end, at)
    for moment, row in zip(at, found, strict=True):
        around = [e - s for s, e in parts if s <= moment <= e]
        assert (row >= 0) == bool(around)
        if around:
            assert start[row] <= moment <= end[row]
            later = max(s for s, e in parts if s <= moment <= e)
            assert start[row] == later


def test_the_snapshots_own_native_frame_names_the_same_operator():
    """The simulated job writes both; the snapshot's stack never saw the trace's clock."""
    session = loaded("leak")
    log = memory_log(session)
    found = allocation_makers(session)
    frames = log.stacks.set_index("stack")["frames"].astype(str)
    native = log.allocations["stack"].map(frames.str.extract(r"at::_ops::(\w+)::call")[0])
    both = native.notna().to_numpy() & found["operator"].notna().to_numpy()
    assert both.sum() > 1000
    named = found["operator"][both].str.removeprefix("aten::").to_numpy()
    same = named == native[both].to_numpy()
    sure = ~found["clock_unsure"][both].to_numpy()
    assert same[sure].all()  # the snapshot's clock counts whole microseconds
    assert sure.mean() > 0.5
    assert same.mean() > 0.999
