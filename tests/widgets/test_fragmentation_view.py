"""Fragmentation over time: axes, the mark, clicks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import maiprof_nb
from maiprof_nb.allocator import MIB
from maiprof_nb.timebase import TimeWindow
from maiprof_widgets.figures.fragmentation import fragmentation_figure
from maiprof_widgets.figures.panels import time_scale
from maiprof_widgets.link import LinkState
from maiprof_widgets.views.fragmentation import FragmentationView
from tests.analysis.made_memory_logs import LoggedAllocator
from tests.shipped_samples import loaded, truth

US = 1000


@pytest.fixture
def made() -> LoggedAllocator:
    """20 MiB are reserved, 3 + 5 in use, then 5 only (see the view of segments)."""
    allocator = LoggedAllocator()
    first = allocator.alloc(3 * MIB, name="gone")
    allocator.alloc(5 * MIB, name="kept")
    allocator.free(first)
    allocator.alloc(2 * MIB, name="later")
    return allocator


def named(view: FragmentationView, name: str) -> Any:
    return next(trace for trace in view.figure.data if trace.name == name)


def marks(view: FragmentationView) -> list[float]:
    return [line.x0 for line in view.figure.layout.shapes]


def test_curves_by_hand(made: LoggedAllocator) -> None:
    view = FragmentationView(made.session(), LinkState())
    assert view.status.value == ""
    # after each event; the 20 MiB come with the first, the 3 MiB with the second. The last 2
    # take all of a hole of 3: what is left is not split off, as it is not above 1 MiB
    assert list(named(view, "reserved").y) == [20, 20, 20, 20, 20, 20]
    assert list(named(view, "allocated").y) == [0, 3, 8, 8, 5, 8]
    assert list(named(view, "largest request that fits").y) == [20, 17, 12, 12, 12, 12]
    share = np.array(named(view, "share of what is free outside the largest free piece").y)
    assert share[0] == 0
    assert share[4] == pytest.approx(100 * (1 - 12 / 15))


def test_the_moment_is_marked_and_a_click_sets_it(made: LoggedAllocator) -> None:
    link = LinkState()
    view = FragmentationView(made.session(), link)
    assert marks(view) == []
    link.moment_ns = 3 * US
    assert marks(view) == [3.0]  # in us
    view._on_click(None, SimpleNamespace(xs=[1.9]), None)
    assert link.moment_ns == 2 * US
    view._on_click(None, SimpleNamespace(xs=[5.0]), None)
    assert link.moment_ns == 5 * US  # the end of the log
    assert marks(view) == [5.0]
    link.moment_ns = None
    assert marks(view) == []


def test_follows_the_window(made: LoggedAllocator) -> None:
    link = LinkState()
    view = FragmentationView(made.session(), link)
    link.window = TimeWindow(2 * US, 4 * US)
    assert list(view.figure.layout.xaxis.range) == [2.0, 4.0]
    assert list(named(view, "allocated").y) == [8, 8, 5]


def test_the_axis_of_bytes_and_its_unit_stay_at_every_zoom() -> None:
    """First 2 MiB are reserved, then 3 GiB more: zoomed into the first, they are 0.00195 GiB."""
    allocator = LoggedAllocator()
    allocator.alloc(1000)  # events 1 and 2
    allocator.alloc(3 << 30)  # events 3 and 4
    link = LinkState()
    view = FragmentationView(allocator.session(), link)
    link.moment_ns = 3 * US
    link.window = TimeWindow(0, 2 * US - 1)
    assert list(named(view, "reserved").y) == [2 / 1024, 2 / 1024]
    assert view.figure.layout.yaxis.range[1] > 3
    assert marks(view) == []  # outside of what is shown


def test_a_log_without_times_counts_events_and_keeps_its_window(corpus: Any) -> None:
    session = maiprof_nb.load(corpus / "memory/select-n/snapshot_llama_streams.pickle.gz")
    link = LinkState()
    view = FragmentationView(session, link)
    assert view.figure.layout.xaxis.title.text.startswith("event number")
    view._on_range(None, (1000.0, 2000.0))
    assert link.window is None
    assert view.shown == TimeWindow(1000, 2000)
    view._on_click(None, SimpleNamespace(xs=[1500.0]), None)
    assert abs((link.moment_ns or 0) - 1500) < 10
    view._on_autorange(None, True)
    assert view.shown == view.whole


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("blockzero/cuda_snapshot.pickle", "needs a memory snapshot with a log"),
        ("mosaic/output.pickle", "does not fit the segments"),
    ],
)
def test_what_cannot_be_shown_is_said(corpus: Any, name: str, words: str) -> None:
    link = LinkState()
    view = FragmentationView(maiprof_nb.load(corpus / "memory" / name), link)
    assert words in view.status.value
    link.moment_ns = 5
    link.dark = True
    assert words in view.status.value


def test_as_a_figure_of_its_own(made: LoggedAllocator) -> None:
    view = FragmentationView(made.session(), LinkState())
    window = TimeWindow(0, 5 * US)
    figure = fragmentation_figure(
        view._found, window=window, scale=time_scale(window.dur_ns), dark=False
    )
    assert figure.layout.yaxis2.range == (0, 100)


def test_a_request_that_failed_is_marked_with_its_size() -> None:
    """What the sample's truth says: 96 MiB asked for, 64 MiB free on the device."""
    view = FragmentationView(loaded("oom"), LinkState())
    known = truth("oom")
    assert known["requested_bytes"] == 96 * MIB
    assert known["device_free_bytes"] == 64 * MIB
    (line,) = view.figure.layout.shapes
    assert line.label.text == "out of memory: 96.0 MiB"
    assert line.label.xanchor == "right"  # at the end of the log, so its words stand before it
    names = [trace.name for trace in view.figure.data]
    assert "after empty_cache(), GPU's rest included" in names
