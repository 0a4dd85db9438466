"""The memory view's Python half: messages in, pictures and link out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from maiprof_nb.recording import Recording
from maiprof_nb.session import Session
from maiprof_nb.tables import SCHEMAS
from maiprof_nb.timebase import Clock, TimeWindow
from maiprof_widgets.link import LinkState, Selection
from maiprof_widgets.views import _memory_words as words
from maiprof_widgets.views.memory import MemoryView
from tests.shipped_samples import loaded

MS = 1_000_000
DTYPES = {"f8": np.float64, "f4": np.float32, "i4": np.int32, "u2": np.uint16, "u1": np.uint8}
SIZES = (4096, 512, 1024)  # made at 0, 10, 20 ms; the second is freed at 30 ms, the log's end


def table(name: str, **columns: Any) -> Any:
    rows = len(next(iter(columns.values())))
    return SCHEMAS[name].frame({c: columns.get(c, [None] * rows) for c in SCHEMAS[name].empty()})


def snapshot(clock: Clock, *, rank: int | None = None, moments: int = MS) -> Recording:
    starts = [0, 10 * moments, 20 * moments]
    ends = [None, 30 * moments, None]
    events = table(
        "allocator_events",
        event=range(4),
        ts_ns=[*starts, 30 * moments],
        device=[0] * 4,
        action=["alloc"] * 3 + ["free_completed"],
        address=[1, 2, 3, 2],
        size_bytes=[*SIZES, 512],
        stream=[0] * 4,
    )
    lives = table(
        "allocations",
        allocation=range(3),
        device=[0] * 3,
        address=[1, 2, 3],
        size_bytes=SIZES,
        requested_bytes=SIZES,
        ts_ns=starts,
        end_ns=ends,
        stream=[0] * 3,
        alloc_event=range(3),
        free_event=[None, 3, None],
        before_log=[False] * 3,
        stack=[0, 1, 0],
    )
    stacks = table(
        "stacks",
        stack=[0, 1],
        label=["train (/job/train.py:7)", "load (/job/data.py:3)"],
        frames=["empty (/torch/nn.py:1)\ntrain (/job/train.py:7)", "load (/job/data.py:3)"],
    )
    tables = {"allocator_events": events, "allocations": lives, "stacks": stacks}
    return Recording("memory.pickle", "snapshot", "cuda-memory-snapshot", tables, clock, rank)


TIMED = Clock(1_700_000_000_000_000_000, "time_us of the events")
ORDERED = Clock(None, "order of the events", ordered_only=True)


class Browser:
    """Stands in for the browser: asks, and keeps what comes."""

    def __init__(self, view: MemoryView) -> None:
        self.view, self.heard = view, []
        view.send = lambda content, buffers=(): self.heard.append((content, buffers))

    def ask(self, **content: Any) -> None:
        self.view._received(self.view, {"view": "v", **content}, [])

    def picture(self, start_us: float, end_us: float, **more: Any) -> dict[str, Any]:
        asked = {"kind": "picture", "id": 1, "columns": 30, "rows": 100, "gesture": False, **more}
        self.ask(start_us=start_us, end_us=end_us, **asked)
        content, buffers = self.heard.pop()
        named = zip(content["arrays"], buffers, strict=True)
        return content | {name: np.frombuffer(b, DTYPES[kind]) for (name, kind), b in named}


@pytest.fixture
def browser() -> Browser:
    return Browser(MemoryView(Session([snapshot(TIMED)]), LinkState()))


def test_picture_as_typed_arrays(browser):
    found = browser.picture(0.0, 30_000.0)
    # one column a millisecond; by the table above
    assert found["allocated_bytes"].tolist() == [4096] * 10 + [4608] * 10 + [5632] * 10
    assert found["size_bytes"].tolist() == list(SIZES)
    assert found["first_column"].tolist() == [0, 10, 20]
    assert found["end_column"].tolist() == [30, 30, 30]
    assert found["peak"] == {"us": 20_000.0, "bytes": 5632.0, "text": "peak 5.50 KiB at 20.0 ms"}
    assert [(entry["label"], entry["size"]) for entry in found["legend"]] == [
        ("train (train.py:7)", "5.00 KiB"),
        ("load (data.py:3)", "512 B"),
    ]
    assert found["tone"].tolist() == [0, 1, 0]  # the stack with most bytes x time is first


def test_gesture_sets_the_link_and_the_whole_is_none(browser):
    browser.picture(5_000.0, 15_000.0, gesture=True)
    assert browser.view.link.window == TimeWindow(5 * MS, 15 * MS)
    assert browser.view.window_us == [5_000.0, 15_000.0]
    browser.picture(0.0, 30_000.0, gesture=True)
    assert browser.view.link.window is None


def test_follows_the_link_without_setting_it_back(browser):
    heard = []
    browser.view.link.observe(heard.append, "window")
    browser.view.link.window = TimeWindow(1 * MS, 2 * MS)
    assert browser.view.window_us == [1_000.0, 2_000.0]
    browser.picture(1_000.0, 2_000.0)  # what the browser then asks
    assert len(heard) == 1


def test_choose_and_clear(browser):
    browser.ask(kind="choose", allocations=1)
    assert browser.view.link.selection == Selection("allocations", row=1, recording=0)
    chosen = browser.view.selected
    assert chosen["heading"] == "512 B allocated by load (/job/data.py:3)"
    assert chosen["facts"].startswith("made at 10.0 ms, freed at 30.0 ms; 512 B requested, 512 B")
    browser.ask(kind="choose")
    assert browser.view.link.selection is None
    assert browser.view.selected == {}


def test_a_row_of_another_recording_is_not_ours(browser):
    browser.view.link.selection = Selection("allocations", row=1, recording=1)
    assert browser.view.selected == {}
    browser.view.link.selection = Selection("allocations", row=1, recording=0)
    assert browser.view.selected["row"] == 1


def test_other_tables_selections_are_not_ours(browser):
    browser.view.link.selection = Selection("operators", name="aten::add")
    assert browser.view.selected == {}
    browser.view.link.selection = Selection("stacks", row=1)
    assert browser.view.selected["stack"] == 1


def test_hover_tells_sizes_and_a_stack_that_starts_at_the_users_own_line(browser):
    browser.ask(kind="band", allocation=0)
    content, _ = browser.heard.pop()
    assert content["frames"] == ["train (train.py:7)"]
    assert content["lines"] == ["4\u202f096 B requested, 4\u202f096 B as rounded"]


def test_ranks_choose_among_the_memories():
    session = Session([snapshot(TIMED, rank=0), snapshot(TIMED, rank=1)])
    view = MemoryView(session, LinkState())
    assert view.about["devices"] == ["rank 0, GPU 0 (snapshot)", "rank 1, GPU 0 (snapshot)"]
    Browser(view).ask(kind="device", device=1)
    assert view.device.rank == 1
    view.link.ranks = (0,)
    assert view.device.rank == 0
    assert view.about["devices"] == ["rank 0, GPU 0 (snapshot)"]
    view.link.ranks = None
    assert len(view.about["devices"]) == 2


def test_order_only_has_its_own_axis():
    view = MemoryView(Session([snapshot(ORDERED, moments=1)]), LinkState())
    assert view.about["axis"] == "order"
    assert view.about["x_title"].startswith("event number")
    assert "no times" in " ".join(view.about["notices"])
    browser = Browser(view)
    browser.picture(0.005, 0.015, gesture=True)  # events 5 to 15
    assert view.link.window is None
    assert view.window == TimeWindow(5, 15)
    view.link.window = TimeWindow(0, 1)
    assert view.window == TimeWindow(5, 15)


def test_state_only_says_so():
    recording = snapshot(TIMED, moments=0)  # everything at one moment
    view = MemoryView(Session([recording]), LinkState())
    assert view.about["axis"] == "state"
    assert "final state" in " ".join(view.about["notices"])
    found = Browser(view).picture(0.0, 0.0)
    assert set(found["allocated_bytes"]) == {4096 + 1024}


def test_nothing_recorded():
    view = MemoryView(Session([]), LinkState())
    codes = [way["code"] for way in view.about["empty"]["ways"]]
    assert any("_dump_snapshot" in code for code in codes)
    assert any("profile_memory=True" in code for code in codes)
    assert view.status == ""


def test_a_bad_message_is_a_sentence_and_the_browser_is_answered(browser):
    browser.ask(kind="picture", id=7, start_us=10.0, end_us=5.0, columns=10, rows=10)
    assert browser.view.status.startswith("a window cannot end")
    content, buffers = browser.heard.pop()
    assert content["id"] == 7
    assert not list(buffers)
    browser.picture(0.0, 1_000.0)
    assert browser.view.status == ""


def test_another_session_is_replayed_anew(browser):
    browser.view.session = Session([snapshot(ORDERED, moments=1)])
    assert browser.view.about["axis"] == "order"
    browser.view.session = Session([])
    assert "empty" in browser.view.about


def test_payload_is_bounded_whatever_the_log():
    rng = np.random.default_rng(7)
    count = 200_000
    starts = np.sort(rng.integers(0, 10**9, count))
    lives = table(
        "allocations",
        allocation=range(count),
        device=[0] * count,
        address=range(count),
        size_bytes=rng.integers(1, 10_000, count) * 512,
        ts_ns=starts,
        end_ns=starts + rng.integers(1, 10**8, count),
        stream=[0] * count,
        alloc_event=range(count),
        before_log=[False] * count,
    )
    events = table(
        "allocator_events",
        event=range(count),
        ts_ns=starts,
        device=[0] * count,
        action=["alloc"] * count,
        address=range(count),
        size_bytes=[1] * count,
        stream=[0] * count,
    )
    tables = {"allocations": lives, "allocator_events": events}
    log = Recording("big", "snapshot", "cuda-memory-snapshot", tables, TIMED)
    browser = Browser(MemoryView(Session([log]), LinkState()))
    asked = {"kind": "picture", "id": 1, "columns": 1_900, "rows": 250, "gesture": False}
    browser.ask(start_us=0.0, end_us=1e6, **asked)
    _, buffers = browser.heard.pop()
    # 4 x 8 bytes a column; 3 x 8 + 4 + 2 x 2 + 3 bytes a band; 2 x 4 bytes a column of one
    # merged band (no stacks here), and 6 for the band itself
    assert sum(map(len, buffers)) <= 1_900 * 32 + 3_000 * 35 + 1_900 * 8 + 6


@pytest.mark.parametrize("axis", ["time", "event"])
def test_a_request_that_failed_is_marked_on_either_axis(axis: str) -> None:
    """The sample's last event, by its truth: 96 MiB asked for, 64 MiB free on the device."""
    browser = Browser(MemoryView(loaded("oom"), LinkState(), axis=axis))
    start, end = browser.view.window_us
    (mark,) = browser.picture(start, end)["refused"]
    last = end if axis == "time" else end - 0.001  # where the last event's own width begins
    assert mark["us"] == pytest.approx(last)
    assert mark["text"] == "out of memory: 96.0 MiB asked for, 64.0 MiB free on the GPU"


def test_changes_that_crowd_in_a_moment_are_said() -> None:
    """100 of 200 changes in 1 us of 1 s, by hand."""
    spread = np.linspace(0, 10**9, 200).astype(np.int64)
    crowd = np.linspace(5 * 10**8, 5 * 10**8 + 1000, 100).astype(np.int64)
    both = np.sort(np.concatenate([spread[::2], crowd]))
    said = words.crowded(both, TimeWindow(0, 10**9 + 1))
    assert said.startswith("Half of the 200 changes shown lie within 1.00 µs")
    assert words.crowded(both, TimeWindow(0, 4 * 10**8)) == ""  # few, and spread
    assert words.crowded(spread, TimeWindow(0, 10**9)) == ""
