"""The memory log replayed: by hand counts on tiny logs, and against the pickles themselves."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import Any

import numpy as np
import pytest

import maiprof_nb
from maiprof_nb.analysis.active_memory import (
    live_at,
    memory_curve,
    memory_devices,
    memory_log,
    memory_picture,
    picture_of,
)
from maiprof_nb.errors import NotAnswerableError, UsageError
from maiprof_nb.loading import registry, sources
from maiprof_nb.recording import Recording
from maiprof_nb.session import Session
from maiprof_nb.tables import SCHEMAS
from maiprof_nb.timebase import Clock, TimeWindow
from tests.memory_by_hand import REAL, content_of, totals

KIB, MIB = 1024, 1024 * 1024
US = 1000
FRAMES = {
    name: [{"name": name, "filename": "/job/train.py", "line": line}]
    for name, line in (("forward", 10), ("backward", 20), ("load", 30))
}


def event(action: str, address: int, size: int, time_us: int, frames: str = "") -> dict[str, Any]:
    made = {"action": action, "addr": address, "size": size, "stream": 0, "time_us": time_us}
    return made | ({"frames": FRAMES[frames]} if frames else {})


def block(address: int, size: int, requested: int, frames: str = "") -> dict[str, Any]:
    found = {"address": address, "size": size, "requested_size": requested}
    return found | {"state": "active_allocated", "frames": FRAMES[frames] if frames else []}


def snapshot(events: list[dict[str, Any]], blocks: list[dict[str, Any]], total: int) -> Session:
    """A snapshot of one 2 MiB-aligned segment that ends with `blocks`."""
    used = sum(b["size"] for b in blocks)
    free = {
        "address": 0x7000 + used,
        "size": total - used,
        "requested_size": 0,
        "state": "inactive",
        "frames": [],
    }
    segment = {
        "device": 0,
        "address": 0x7000,
        "total_size": total,
        "allocated_size": used,
        "active_size": used,
        "requested_size": sum(b["requested_size"] for b in blocks),
        "stream": 0,
        "segment_type": "small",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": [*blocks, free],
    }
    content = {"segments": [segment], "device_traces": [events]}
    return Session([registry.read(pickle.dumps(content, protocol=4), "tiny.pickle")])


@pytest.fixture
def tiny() -> Session:
    """A 1024 B block from before, then seven changes (sizes round up to 512 B).

    t=0    segment of 2 MiB          reserved 2 -> 4 MiB
    t=10   forward takes 1000 B      1024 + 1024 = 2048
    t=10   backward takes 512 B      2560, the peak
    t=10   forward's block is freed  1536
    t=30   load takes 100 B          2048, lives on
    t=40   segment of 2 MiB freed    reserved 4 -> 2 MiB
    t=50   backward's block is freed 1536
    """
    base = 1_700_000_000_000_000
    return snapshot(
        [
            event("segment_alloc", 0x900000, 2 * MIB, base),
            event("alloc", 0x7400, 1000, base + 10, "forward"),
            event("alloc", 0x7800, 512, base + 10, "backward"),
            event("free_requested", 0x7400, 1000, base + 10),
            event("free_completed", 0x7400, 1000, base + 10),
            event("alloc", 0x7400, 100, base + 30, "load"),
            event("segment_free", 0x900000, 2 * MIB, base + 40),
            event("free_requested", 0x7800, 512, base + 49),
            event("free_completed", 0x7800, 512, base + 50),
        ],
        [block(0x7000, 1024, 1000, "load"), block(0x7400, 512, 100, "load")],
        2 * MIB,
    )


def test_curve_by_hand(tiny):
    curve = memory_curve(tiny)
    assert curve["ts_ns"].tolist() == [x * US for x in (0, 0, 10, 10, 10, 30, 40, 50)]
    assert curve["allocated_bytes"].tolist() == [1024, 1024, 2048, 2560, 1536, 2048, 2048, 1536]
    assert curve["requested_bytes"].tolist() == [1000, 1000, 2000, 2512, 1512, 1612, 1612, 1100]
    assert curve["reserved_bytes"].tolist() == [m * MIB for m in (2, 4, 4, 4, 4, 4, 2, 2)]


def test_curve_of_a_window_starts_with_the_state_there(tiny):
    curve = memory_curve(tiny, TimeWindow(20 * US, 45 * US))
    assert curve["ts_ns"].tolist() == [20 * US, 30 * US, 40 * US]
    assert curve["allocated_bytes"].tolist() == [1536, 2048, 2048]
    assert memory_curve(tiny, TimeWindow(60 * US, 70 * US)).empty


def test_live_at_by_hand(tiny):
    at_10 = live_at(tiny, 10 * US)
    assert at_10["size_bytes"].tolist() == [1024, 512]
    assert [text.split(" ")[0] for text in at_10["label"]] == ["load", "backward"]
    at_end = live_at(tiny, 50 * US)
    assert at_end[["size_bytes", "blocks"]].to_numpy().tolist() == [[1536, 2]]
    with pytest.raises(UsageError, match="outside the memory log"):
        live_at(tiny, 51 * US)


def test_one_column_still_shows_the_peak_inside_one_microsecond(tiny):
    picture = memory_picture(tiny, columns=1)
    assert picture.peak_bytes == 2560
    assert picture.peak_us == 10
    assert picture.size_bytes.tolist() == [1024, 1024, 512]  # what lives at that moment
    assert picture.before_log.tolist() == [1, 0, 0]
    assert (picture.hidden, picture.hidden_bytes) == (1, 512)  # load's block comes later


def test_bands_lie_where_they_live(tiny):
    picture = memory_picture(tiny, TimeWindow(0, 50 * US), columns=5)
    # columns of 10 us; the third event at t=10 us falls into the second column
    assert picture.allocated_bytes.tolist() == [1024, 2560, 1536, 2048, 2048]
    spans = zip(picture.first_column, picture.end_column, strict=True)
    assert [(int(a), int(b)) for a, b in spans] == [(0, 5), (1, 2), (1, 5), (3, 5)]
    assert picture.start_us.tolist() == [0, 10, 10, 30]
    assert picture.end_us.tolist() == [np.inf, 10, 50, np.inf]
    assert picture.rest_bytes.tolist() == [0, 0, 0, 0, 0]


def test_bands_left_out_are_merged_by_stack(tiny):
    picture = memory_picture(tiny, TimeWindow(0, 50 * US), columns=5, max_bands=2)
    # bytes x time: 1024 x 50 (before), 512 x 40 (backward), 512 x 20 (load), 1024 x 0 (forward)
    assert picture.size_bytes.tolist() == [1024, 512]
    assert picture.rest_bytes.tolist() == [0, 0, 0, 0, 0]
    assert picture.merged.bytes_.tolist() == [[0, 1024, 0, 0, 0], [0, 0, 0, 512, 512]]
    assert picture.merged.count.tolist() == [[0, 1, 0, 0, 0], [0, 0, 0, 1, 1]]
    assert (picture.hidden, picture.hidden_bytes) == (0, 0)


def test_lower_than_a_pixel_is_merged_and_lower_even_so_is_the_rest(tiny):
    # 4 MiB reserved in 2048 rows: 2048 B a pixel, which no single allocation reaches
    picture = memory_picture_of(tiny, rows=2048)
    assert picture.size_bytes.tolist() == []
    assert picture.merged.bytes_.tolist() == [[1024, 2560, 1536, 2048, 2048]]
    assert picture.merged.count.tolist() == [[1, 3, 2, 3, 3]]
    assert picture.merged.allocations.tolist() == [4]
    # two groups of 1536 B and 2048 B at most: of the first, nothing is drawn
    split = memory_picture_of(tiny, rows=2048, groups=np.array([0, 1, 0, 1]))
    assert split.merged.group.tolist() == []
    assert split.rest_bytes.tolist() == [1024, 2560, 1536, 2048, 2048]
    assert (split.hidden, split.hidden_bytes) == (4, 3072)


def memory_picture_of(session, rows, groups=None):
    log = memory_log(session)
    groups = np.zeros(len(log.allocations), dtype=np.int64) if groups is None else groups
    return picture_of(log, TimeWindow(0, 50 * US), columns=5, rows=rows, groups=groups)


def test_outside_the_log_is_unknown_not_zero(tiny):
    picture = memory_picture(tiny, TimeWindow(-100 * US, 200 * US), columns=3)
    assert np.isnan(picture.allocated_bytes).tolist() == [True, False, True]
    away = memory_picture(tiny, TimeWindow(200 * US, 300 * US), columns=3)
    assert np.isnan(away.peak_bytes)
    assert len(away.size_bytes) == 0


def test_a_selected_session_is_replayed_from_the_whole_log(tiny):
    part = tiny.select(window=TimeWindow(25 * US, 35 * US))
    assert memory_curve(part)["allocated_bytes"].max() == 2560
    assert memory_picture(part).window == TimeWindow(25 * US, 35 * US)
    assert memory_picture(part).peak_bytes == 2048


def test_nothing_recorded_says_what_to_record():
    with pytest.raises(NotAnswerableError, match="_record_memory_history"):
        memory_curve(Session([]))


def trace(events: list[tuple[Any, ...]], operators: list[tuple[Any, ...]] = ()) -> Session:
    """Rows: ts_ns, device_type, address, size, total; and name, ts_ns, dur_ns."""
    n, m = len(events), len(operators)
    table = SCHEMAS["memory_events"].frame(
        {
            "event": range(n),
            "ts_ns": [e[0] for e in events],
            "pid": ["1"] * n,
            "tid": ["1"] * n,
            "device_type": [e[1] for e in events],
            "device": [0] * n,
            "address": [e[2] for e in events],
            "size_bytes": [e[3] for e in events],
            "allocated_bytes": [e[4] for e in events],
            "reserved_bytes": [None] * n,
        }
    )
    empty = SCHEMAS["operators"].empty()
    columns: dict[str, Any] = {name: [None] * m for name in empty}
    columns |= {"event": range(100, 100 + m), "name": [o[0] for o in operators]}
    columns |= {"ts_ns": [o[1] for o in operators], "dur_ns": [o[2] for o in operators]}
    columns |= {"pid": ["1"] * m, "tid": ["1"] * m}
    tables = {"memory_events": table, "operators": SCHEMAS["operators"].frame(columns)}
    return Session([Recording("t.json", "trace", "kineto-json", tables, Clock(0, "test"))])


def test_trace_totals_and_pairs_by_address():
    session = trace(
        [
            (10, 0, 1, -64, 936),  # made before the recording: 1000 B were there
            (20, 0, 2, 100, 1036),
            (30, 0, 3, 50, 1086),
            (40, 0, 2, -100, 986),
            (50, 0, 2, 30, 1016),
        ],
        [("aten::linear", 15, 30), ("aten::empty", 18, 4)],
    )
    log = memory_log(session)
    assert log.allocated_bytes.tolist() == [1000, 936, 1036, 1086, 986, 1016]
    lives = log.allocations
    assert lives["size_bytes"].tolist() == [64, 100, 50, 30]
    assert lives["before_log"].tolist() == [True, False, False, False]
    # session time starts at the first event, 10 ns into the recording
    assert lives["ts_ns"].tolist() == [0, 10, 20, 40]
    assert lives["end_ns"].isna().tolist() == [False, False, True, True]
    named = dict(zip(log.stacks["stack"], log.stacks["frames"], strict=True))
    assert named[lives["stack"].iloc[1]] == "aten::empty\naten::linear"
    assert named[lives["stack"].iloc[2]] == "aten::linear"
    assert lives["stack"].isna().tolist() == [True, False, False, True]
    label = log.stacks.set_index("stack")["label"]
    assert label[lives["stack"].iloc[1]] == "aten::linear"  # empty alone says nothing
    held = live_at(session, 40)
    assert held["label"].tolist()[0] == "allocated before the recording"
    assert held["size_bytes"].tolist() == [936, 50, 30]


def test_trace_without_totals_or_addresses():
    session = trace(
        [(0, 0, None, 8, None), (1, 0, None, 8, None), (2, 0, None, -8, None),
         (3, 0, None, -8, None), (4, 0, None, -16, None)]
    )  # fmt: skip
    log = memory_log(session)
    assert not log.baseline_known
    assert log.pairing_guessed
    assert log.allocated_bytes.tolist() == [16, 24, 32, 24, 16, 0]  # the least that can be
    ends = log.allocations.set_index("first_state")["end_state"].to_dict()
    assert ends == {0: 5, 1: 4, 2: 3}  # the newest of the size first


@pytest.mark.parametrize("name", REAL)
def test_every_real_snapshot_against_a_log_undone_by_hand(corpus, name):
    """Peaks, ends and beginnings of all three curves, of every device of every file."""
    path = corpus / "memory" / name
    session = maiprof_nb.load(path)
    content = content_of(path)
    content = content if isinstance(content, dict) else {"segments": content}
    for device in memory_devices(session):
        log, truth = memory_log(session, device), totals(content, device.device)
        for mine, known in (
            (log.allocated_bytes, truth.allocated),
            (log.requested_bytes, truth.requested),
            (log.reserved_bytes, truth.reserved),
        ):
            assert mine is not None
            assert [int(mine[0]), int(mine.max()), int(mine.min()), int(mine[-1])] == (
                [int(known[0]), int(known.max()), int(known.min()), int(known[-1])]
            )
        assert (log.allocated_bytes <= log.reserved_bytes).all()
        assert log.allocated_bytes.min() >= 0


def test_every_snapshot_ends_as_torch_counts_its_final_state(corpus):
    calc_active = pytest.importorskip("torch.cuda._memory_viz").calc_active
    seen = Counter[str]()
    for path in sorted((corpus / "memory").glob("*/*.pickle*")):
        session = maiprof_nb.load(path)
        content = content_of(path)
        for device in memory_devices(session):
            log = memory_log(session, device)
            mine = [s for s in content["segments"] if s["device"] == device.device]
            assert log.allocated_bytes[-1] == sum(map(calc_active, mine)), path.name
            if path.name == "output.pickle":  # SYNTHETIC: more in blocks than in segments
                assert log.reserved_bytes is None
            else:
                assert log.reserved_bytes is not None
                assert log.reserved_bytes[-1] == sum(s["total_size"] for s in mine), path.name
            seen[device.axis] += 1
    assert seen["time"] > 10
    assert seen["order"] == 2  # the two logs without time_us
    assert seen["state"] > 5


@pytest.mark.parametrize("columns", [1, 7, 333, 2000])
def test_picture_is_whole_and_bounded_at_any_width(corpus, columns):
    path = corpus / "memory" / "cs336-kk" / "memory_ctx512_fullstep.pickle.gz"
    log = memory_log(Session([registry.read(sources.content(str(path))[0], "x")]))
    for window in (log.span, TimeWindow(200_000_000, 210_000_000)):
        picture = picture_of(log, window, columns=columns, max_bands=500)
        inside = (log.ts_ns >= window.start_ns) & (log.ts_ns <= window.end_ns)
        assert picture.peak_bytes >= log.allocated_bytes[inside].max()
        assert len(picture.size_bytes) <= 500
        drawn = np.zeros(columns)
        for first, end, size in zip(
            picture.first_column, picture.end_column, picture.size_bytes, strict=True
        ):
            drawn[first:end] += size
        drawn += picture.merged.bytes_.sum(axis=0)
        assert (picture.rest_bytes >= 0).all()
        assert (drawn + picture.rest_bytes == picture.allocated_bytes).all()
        assert (np.diff(picture.allocation) > 0).all()  # older below


def test_trace_totals_agree_with_its_pairs_at_every_event(corpus):
    """A V100 trace counts its totals itself; pairs by address must explain every change."""
    path = corpus / "kineto" / "hta-df-index-resolver" / "df_index_resolver.json.gz"
    session = maiprof_nb.load(path)
    log = memory_log(session)
    assert log.device.label == "rank 1, GPU 1 (trace)"
    assert len(log.ts_ns) == 26_770 + 1  # its memory events of device type 1, and the start
    lives = log.allocations
    states = len(log.ts_ns)
    change = np.bincount(lives["first_state"], lives["size_bytes"], states + 1)
    change -= np.bincount(lives["end_state"], lives["size_bytes"], states + 1)
    unexplained = log.allocated_bytes - np.cumsum(change)[:states]
    assert set(unexplained) == {4_096_614_400}  # all from before the recording
    assert not log.pairing_guessed


def test_a_moment_at_which_no_live_block_has_a_stack(corpus):
    """The first moment of this log holds only what was there before it, which has no stacks."""
    path = corpus / "memory" / "cs336-charan" / "memory_snapshot.pickle.gz"
    session = maiprof_nb.load(path)
    found = live_at(session, 0)
    assert set(found["label"]) == {"no stack recorded"}
    assert found["size_bytes"].sum() > 0
