"""The memory view and the views of operators, linked both ways; the axis by event; search."""

from __future__ import annotations

import numpy as np
import pytest

from maiprof_nb.analysis.memory_by_event import times_of
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow
from maiprof_widgets.link import LinkState, Selection
from maiprof_widgets.views.allocations_made import AllocationsMade
from maiprof_widgets.views.memory import MemoryView
from maiprof_widgets.views.ranking import RankingView
from maiprof_widgets.views.utilisation import UtilisationView
from tests.shipped_samples import loaded, truth
from tests.widgets.test_memory_view import MS, ORDERED, TIMED, Browser, snapshot


@pytest.fixture
def browser() -> Browser:
    return Browser(MemoryView(Session([snapshot(TIMED)]), LinkState()))


@pytest.fixture
def leak() -> Browser:
    return Browser(MemoryView(loaded("leak"), LinkState()))


def whole(browser: Browser, **more):
    low, high = browser.view.window_us
    return browser.picture(low, high, columns=400, rows=250, **more)


def test_by_event_zoom_sets_the_time_of_the_events(browser):
    view = browser.view
    browser.ask(kind="axis", axis="event")
    assert view.about["axis"] == "order"
    assert view.about["axes"] == "event"
    # five states: before, three made at 0, 10, 20 ms, one freed at 30 ms
    assert view.window == TimeWindow(0, 5)
    found = browser.picture(0.0, 0.005, columns=5)
    assert found["allocated_bytes"].tolist() == [0, 4096, 4608, 5632, 5120]
    browser.picture(0.002, 0.004, gesture=True)
    assert view.link.window == TimeWindow(10 * MS, 30 * MS)
    assert view.window == TimeWindow(2, 4)  # kept, not guessed back from the times
    view.link.window = TimeWindow(0, 15 * MS)  # another view zooms: states 1 and 2 are in force
    assert view.window == TimeWindow(1, 3)
    browser.ask(kind="axis", axis="time")
    assert view.window_us == [0.0, 15_000.0]


def test_a_log_without_times_has_no_other_axis():
    view = MemoryView(Session([snapshot(ORDERED, moments=1)]), LinkState())
    assert view.about["axes"] == ""


def test_search_fades_and_counts(browser):
    browser.ask(kind="search", text="load")
    found = browser.picture(0.0, 30_000.0)
    assert found["lit"].tolist() == [0, 1, 0]
    # at the peak (20 ms): the 512 B of load among 5632 B
    assert found["lines"][0] == (
        "\N{LEFT DOUBLE QUOTATION MARK}load\N{RIGHT DOUBLE QUOTATION MARK}: 1 allocation at the "
        "peak of the log, 512 B of its 5.50 KiB; 1 live in the time shown, 512 B added up."
    )
    browser.ask(kind="search", text=">10Xi")
    assert "no size" in browser.view.status
    assert browser.view.search == "load"
    browser.ask(kind="search", text="")
    assert browser.picture(0.0, 30_000.0)["lit"].tolist() == [1, 1, 1]


def test_what_was_made_in_the_time_shown(browser):
    lines = browser.picture(5_000.0, 25_000.0)["lines"]
    # 512 B at 10 ms and 1024 B at 20 ms; both still there at 25 ms
    assert lines == [
        "In the time shown: 2 allocations made, 1.50 KiB; 1.50 KiB of them still live at its end."
    ]


def test_small_ones_are_merged_and_named(browser):
    # 5632 B in 4 rows: 1408 B a pixel, which only the first is high enough for
    found = browser.picture(0.0, 30_000.0, rows=4)
    assert found["size_bytes"].tolist() == [4096]
    # only the stack of the third reaches 1024 B, less than a pixel: it is the rest
    assert found["merged_names"] == []
    assert found["rest_bytes"].max() == 1536
    assert "2 too brief or small to show (1.50 KiB added up)" in found["drawn"]
    browser.ask(kind="colour", by="module")
    found = browser.picture(0.0, 30_000.0, rows=8)
    assert found["merged_names"] == []  # data.py: 512 B of 704 B a pixel
    assert found["size_bytes"].tolist() == [4096, 1024]


@pytest.mark.parametrize("by", ["stack", "category", "module", "phase", "stream", "age"])
def test_colours_stay_at_every_zoom(leak, by):
    leak.ask(kind="colour", by=by)
    first = whole(leak)
    low, high = leak.view.window_us
    zoomed = leak.picture(low + (high - low) / 2, high, columns=300, rows=250)
    tones = dict(zip(first["allocation"].tolist(), first["tone"].tolist(), strict=True))
    shared = [one for one in zoomed["allocation"].tolist() if one in tones]
    assert len(shared) > 20
    kept = dict(zip(zoomed["allocation"].tolist(), zoomed["tone"].tolist(), strict=True))
    assert [kept[one] for one in shared] == [tones[one] for one in shared]
    assert first["legend"]
    for ground in ("light", "dark"):
        hues = first["palette"][ground]
        assert len(set(hues)) == len(hues)


def test_bands_merged_bands_and_rest_are_all_there_is(leak):
    found = whole(leak)
    columns = len(found["allocated_bytes"])
    drawn = np.zeros(columns)
    for first, end, size in zip(
        found["first_column"], found["end_column"], found["size_bytes"], strict=True
    ):
        drawn[first:end] += size
    merged = found["merged_bytes"].reshape(-1, columns).sum(axis=0)
    assert len(found["merged_names"]) >= 1
    total = drawn + merged + found["rest_bytes"]
    seen = ~np.isnan(found["allocated_bytes"])
    np.testing.assert_allclose(total[seen], found["allocated_bytes"][seen], rtol=1e-6)


def test_an_operator_chosen_elsewhere_lights_what_it_made(leak):
    leak.view.link.selection = Selection("operators", name="aten::native_dropout")
    found = whole(leak)
    lit = found["allocation"][found["lit"] == 1]
    makers = leak.view._memory().makers.set_index("allocation")["operator"]
    assert len(lit) > 20
    assert set(makers[lit]) == {"aten::native_dropout"}
    assert found["lines"][0].startswith("aten::native_dropout: ")
    assert "live on after the call that made them" in found["lines"][0]
    leak.view.link.selection = Selection("operators", name="no such operator")
    found = whole(leak)
    assert found["lit"].all()
    assert found["lines"][0].startswith("No allocation here was made while no such operator ran")


def test_a_step_is_a_selection_too(leak):
    leak.view.link.selection = Selection("operators", name="ProfilerStep#9")
    lit = whole(leak)
    rows = leak.view._memory().makers.set_index("allocation")["step"]
    assert set(rows[lit["allocation"][lit["lit"] == 1]]) == {9}
    # the job keeps 192 MiB of every step: the written truth of the sample
    assert truth("leak")["scenario"] == "leak"
    kept = leak.view.log.allocations.merge(rows.reset_index(), on="allocation")
    kept = kept[kept["end_ns"].isna() & kept["step"].eq(9).fillna(value=False)]
    assert kept["size_bytes"].max() == 192 * 2**20


def test_a_chosen_band_marks_the_call_and_the_row_that_made_it():
    session, link = loaded("leak"), LinkState()
    memory = MemoryView(session, link)
    utilisation, ranking = UtilisationView(session, link), RankingView(session, link)
    makers = memory._memory().makers
    row = makers[makers["operator"] == "aten::native_dropout"].iloc[5]
    Browser(memory).ask(kind="choose", allocations=int(row["allocation"]))
    assert "made in aten::native_dropout" in memory.selected["facts"]
    marks = utilisation._marks(session.window)
    operators = session.table("operators").set_index("event")
    assert marks["ts_ns"].tolist() == [operators["ts_ns"][row["event"]]]
    assert marks["calls"].tolist() == [1]
    assert "aten::native_dropout" in ranking.chosen.value
    chosen = ranking.ranking["name"].iloc[ranking.table.selected_rows[0]]
    assert chosen == "aten::native_dropout"
    link.selection = None
    assert ranking.table.selected_rows == []
    assert utilisation._marks(session.window).empty


def test_the_moment_goes_both_ways(browser):
    view = browser.view
    browser.ask(kind="moment", us=12_000.0)
    assert view.link.moment_ns == 12 * MS
    assert view.moment_us == 12_000.0
    view.axis = "event"
    assert view.moment_us == 0.002  # the state since 10 ms
    browser.ask(kind="moment", us=0.0031)
    assert view.link.moment_ns == 20 * MS
    view.link.moment_ns = None
    assert view.moment_us is None


def test_table_of_what_was_made_follows_the_window_and_selects_its_stack():
    view = MemoryView(Session([snapshot(TIMED)]), LinkState())
    made = AllocationsMade(view)
    assert made.made["size_bytes"].tolist() == [5120, 512]
    assert made.made["kept_bytes"].tolist() == [5120, 0]  # freed at the window's very end
    view.link.window = TimeWindow(5 * MS, 15 * MS)
    assert made.made["size_bytes"].tolist() == [512]
    made.table.selected_rows = [0]
    assert view.link.selection == Selection("stacks", row=1, recording=0)
    assert view.selected["stack"] == 1
    view.link.window = TimeWindow(5 * MS, 6 * MS)
    assert made.made.empty
    assert made.status.value == ""


def test_times_of_events_hold_what_the_events_hold(leak):
    log = leak.view.log
    window = times_of(log, TimeWindow(100, 300))
    inside = (log.ts_ns >= window.start_ns) & (log.ts_ns <= window.end_ns)
    assert inside[100:300].all()
