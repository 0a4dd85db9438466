"""The view of the allocator's segments, its Python half: messages in, states and link out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import maiprof_nb
from maiprof_nb import units
from maiprof_nb.allocator import MIB
from maiprof_nb.loading import registry
from maiprof_nb.session import Session
from maiprof_widgets.link import LinkState, Selection
from maiprof_widgets.views.allocator_state import AllocatorStateView
from tests.analysis.made_memory_logs import LoggedAllocator
from tests.shipped_samples import loaded, truth

TYPES = {"f8": np.float64, "f4": np.float32, "i4": np.int32, "u1": np.uint8}
US = 1000  # a made log's n-th event happens at n us


class Browser:
    """Stands in for the browser: asks, and keeps what comes."""

    def __init__(self, view: AllocatorStateView) -> None:
        self.view, self.heard = view, []
        view.send = lambda content, buffers=(): self.heard.append((content, buffers))

    def ask(self, **content: Any) -> None:
        self.view._received(self.view, {"view": "v", **content}, [])

    def state(self, state: int, *, gesture: bool = True, **more: Any) -> dict[str, Any]:
        asked = {"kind": "state", "id": 1, "columns": 1000, "order": "address", "focus": None}
        self.ask(state=state, gesture=gesture, **(asked | more))
        content, buffers = self.heard.pop()
        named = zip(content.get("arrays", ()), buffers, strict=True)
        return content | {name: np.frombuffer(b, TYPES[kind]) for (name, kind), b in named}


@pytest.fixture
def made() -> LoggedAllocator:
    """Twice 3 MiB beside 5 that stay, in a segment of 20 MiB; the first 3 are freed."""
    allocator = LoggedAllocator()
    first = allocator.alloc(3 * MIB, name="gone")  # events 1 (the segment) and 2
    allocator.alloc(5 * MIB, name="kept")  # event 3
    allocator.free(first)  # events 4 and 5
    allocator.alloc(2 * MIB, name="later")  # event 6
    return allocator


@pytest.fixture
def browser(made: LoggedAllocator) -> Browser:
    return Browser(AllocatorStateView(made.session(), LinkState()))


def figures(found: dict[str, Any]) -> dict[str, str]:
    return {name: value for name, value, _ in found["figures"]}


def test_a_state_as_typed_arrays_and_words(browser: Browser) -> None:
    found = browser.state(5)
    assert found["size_bytes"].tolist() == [3 * MIB, 5 * MIB, 12 * MIB]
    assert found["kind"].tolist() == [2, 0, 2]  # a hole, in use, a hole
    assert found["moment"] == "After event 5 of 6, at 4.00 µs: 3.00 MiB freed."
    assert figures(found) == {
        "reserved": "20.0 MiB",
        "allocated": "5.00 MiB",
        "unused": "15.0 MiB",
        "would go back": "0 B",
        "stranded": "15.0 MiB",
        "largest request now": "12.0 MiB",
        "after empty_cache()": "12.0 MiB",
        "if defragmented": "14.0 MiB",  # segments this large are taken in steps of 2 MiB
    }
    assert "1 segment, 20.0 MiB, of it 15.0 MiB unused" in found["groups"][0]["title"]
    assert found["legend"][0]["label"].startswith("kept")
    assert found["one_size_bytes"].tolist() == found["size_bytes"].tolist()


def test_what_waits_to_be_freed_is_said(browser: Browser) -> None:
    found = browser.state(4)
    assert found["kind"].tolist() == [1, 0, 2]
    allocated = next(note for name, _, note in found["figures"] if name == "allocated")
    assert "3.00 MiB of it waits to be freed" in allocated


def test_scrubbing_sets_the_moment(browser: Browser) -> None:
    browser.state(3)
    assert browser.view.link.moment_ns == 2 * US  # the third event, at 2 us
    browser.state(6)
    assert browser.view.link.moment_ns == 5 * US  # the end is a moment like any other
    browser.state(3, gesture=False)  # what the browser asks to draw, nobody wished for
    assert browser.view.link.moment_ns == 5 * US


def test_the_link_moves_the_view_without_an_echo(browser: Browser) -> None:
    heard: list[Any] = []
    browser.view.link.observe(heard.append, "moment_ns")
    turn = browser.view.place["turn"]
    browser.view.link.moment_ns = 3 * US + 500
    assert browser.view.place == {"state": 4, "turn": turn + 1}
    browser.state(4, gesture=False)
    assert len(heard) == 1
    browser.view.link.moment_ns = None
    assert browser.view.place["state"] == browser.view.state == 3  # the first of the peak, 8 MiB
    browser.view.link.moment_ns = 10**12  # beyond the log
    assert browser.view.state == 6
    browser.view.link.moment_ns = -5
    assert browser.view.state == 0  # before it


def test_events_of_one_time_stamp_are_states_of_their_own(made: LoggedAllocator) -> None:
    for row in made.events:
        row["time_us"] = 7
    browser = Browser(AllocatorStateView(made.session(), LinkState()))
    browser.state(3)
    assert browser.view.state == 3  # not the last of that moment
    assert browser.view.link.moment_ns == 0


def test_a_click_selects_the_allocation_and_the_reverse_outlines_it(browser: Browser) -> None:
    found = browser.state(6)
    block = int(found["block"][1])
    browser.ask(kind="choose", block=block)
    chosen = browser.view.link.selection
    assert chosen is not None
    assert (chosen.table, chosen.recording) == ("allocations", 0)
    table = browser.view.session.recordings[0].table("allocations").set_index("allocation")
    assert table.loc[chosen.row, "size_bytes"] == 5 * MIB
    assert browser.view.selected["block"] == block
    assert "5.00 MiB of kept" in browser.view.selected["text"]
    assert browser.view.selected["go_to"] is None
    gone = int(table.index[table["size_bytes"].eq(3 * MIB)][0])
    browser.view.link.selection = Selection("allocations", row=gone)
    assert "does not live at the moment shown" in browser.view.selected["text"]
    assert browser.view.selected["go_to"] == 2
    browser.state(2)
    assert browser.view.selected["go_to"] is None
    browser.view.link.selection = Selection("allocations", row=gone, recording=1)
    assert browser.view.selected == {}
    browser.ask(kind="choose", block=None)
    assert browser.view.link.selection is None


def test_hover_tells_sizes_life_and_stack(browser: Browser) -> None:
    found = browser.state(3)
    block = int(found["block"][0])
    browser.ask(kind="block", block=block)
    told, _ = browser.heard.pop()
    assert told["heading"] == "3.00 MiB"
    assert told["facts"][0] == f"{units.count(3 * MIB)} B, as requested"
    assert f"{int(found['address'][0]):#x}" in told["facts"][1]
    asked = "since event 2 (1.00 µs); its free was asked for at event 4 (3.00 µs), done at event 5"
    assert told["facts"][2].startswith(asked)
    assert told["frames"] == "gone (train.py:1)"


def test_who_holds_the_holes(browser: Browser) -> None:
    browser.view.show(5)
    rows = browser.view.holders["rows"]
    assert [row["held"] for row in rows] == ["15.0 MiB"]
    assert rows[0]["label"].startswith("kept")
    browser.ask(kind="stack", stack=rows[0]["stack"])
    assert browser.view.link.selection == Selection("stacks", row=rows[0]["stack"], recording=0)
    assert "1 block, 5.00 MiB at the moment shown" in browser.view.selected["text"]


def test_a_segment_can_be_drawn_large(browser: Browser) -> None:
    address = int(browser.state(6)["address"][0])
    assert browser.state(6)["one"]["title"].startswith("The segment with most stranded memory")
    found = browser.state(6, focus=float(address + MIB))
    assert found["one"]["title"].startswith(f"Segment at {address:#x}: 20.0 MiB")
    assert "one" not in browser.state(0)  # before the log there is none


def test_bad_messages_are_answered_and_said(browser: Browser) -> None:
    found = browser.state(3, order="colour")
    assert "arrays" not in found
    assert "colour" in browser.view.status
    browser.ask(kind="block", block="seven")
    assert "Traceback" not in browser.view.status
    assert browser.state(-4)["state"] == 0
    assert browser.state(99)["state"] == 6
    assert browser.view.status == ""


def test_nothing_recorded_and_a_log_that_does_not_fit(corpus: Any) -> None:
    trace = registry.read(b'{"traceEvents": []}', "t.json")
    view = AllocatorStateView(Session([trace]))
    assert "_dump_snapshot" in view.about["empty"]["ways"][0]["code"]
    assert "arrays" not in Browser(view).state(0)
    made_up = AllocatorStateView(maiprof_nb.load(corpus / "memory" / "mosaic/output.pickle"))
    assert "does not fit the segments" in made_up.about["empty"]["sentence"]
    assert made_up.device is None


def test_devices_and_ranks(corpus: Any) -> None:
    session = maiprof_nb.load(corpus / "memory/expandable/dump_snapshot_2gpu.pickle")
    browser = Browser(AllocatorStateView(session, LinkState()))
    assert browser.view.about["devices"] == ["GPU 0 (snapshot)", "GPU 1 (snapshot)"]
    assert browser.view.about["still"]  # no log: one moment
    browser.ask(kind="device", device=1)
    assert browser.view.device is not None
    assert browser.view.device.device == 1
    assert "expandable" in browser.state(0)["groups"][0]["title"]
    browser.view.link.ranks = (3,)  # nobody knows the rank of either, so both stay
    assert browser.view.about["device"] == 1


def test_the_largest_log_is_a_bounded_answer(corpus: Any) -> None:
    """20 128 events, 1 021 segments at the end, 3.2 GB stranded by SOURCES.md of the corpus."""
    path = corpus / "memory/cs336-kk/memory_ctx256_fullstep.pickle.gz"
    browser = Browser(AllocatorStateView(maiprof_nb.load(path), LinkState()))
    view = browser.view
    view._received(
        view,
        {"kind": "state", "view": "v", "id": 1, "columns": 4000, "order": "unused", "state": 20128},
        [],
    )
    content, buffers = browser.heard.pop()
    assert sum(len(buffer) for buffer in buffers) < 250_000
    assert figures(content)["stranded"] == "3.15 GiB"
    assert view.about["last"] == 20128
    assert view.about["most_unused"] == 0  # before the 780 segments went back
    assert len(view.about["curve"]["state"]) <= 400


def test_it_opens_where_a_request_failed() -> None:
    """In the sample it is the last event; the truth says what the device had and had left."""
    browser, known = Browser(AllocatorStateView(loaded("oom"), LinkState())), truth("oom")
    assert browser.view.link.moment_ns is None
    assert browser.view.about["refused"] == [browser.view.state]
    found = browser.state(browser.view.state, gesture=False)
    assert "out of memory: 96.0 MiB asked for" in found["moment"]
    left, size = (units.size(known[name]) for name in ("device_free_bytes", "device_bytes"))
    beyond = {name: note for name, _, note in found["figures"]}["if defragmented"]
    assert beyond == f"with the {left} that the GPU has left of {size}"
    fits = units.size(known["fits_after_defragmentation_bytes"])
    assert figures(found)["if defragmented"] == fits
