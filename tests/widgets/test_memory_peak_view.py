"""The view of the peak and that of two moments: what they say, follow and set."""

from __future__ import annotations

from pathlib import Path

import pytest

import maiprof_nb
from maiprof_nb import units
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow
from maiprof_widgets.dashboards.memory import MemoryDashboard
from maiprof_widgets.figures.theme import DARK
from maiprof_widgets.link import LinkState, Selection
from maiprof_widgets.views.memory_diff import MemoryDiffView
from maiprof_widgets.views.memory_peak import MemoryPeakView
from tests.findings.tiny_memory import GIB, MIB, Job
from tests.shipped_samples import loaded

LINE, OTHER = "forward (/job/model.py:10)", "step (/job/optim.py:5)"
HOSTILE = "<img src=x onerror=alert(1)> (/job/model.py:11)"


def growing() -> Job:
    """1 GiB of a line at its 1st change, 2 GiB of another that go again, 1 GiB more: 3 GiB."""
    job = Job()
    job.take(GIB, LINE)
    job.give(job.take(2 * GIB, OTHER))
    job.take(GIB, LINE)
    job.take(MIB, HOSTILE)
    return job


@pytest.fixture(scope="module")
def session() -> Session:
    return growing().session()


@pytest.fixture
def view(session: Session) -> MemoryPeakView:
    return MemoryPeakView(session, LinkState())


def cells(view: MemoryPeakView, column: int) -> list[str]:
    return [str(one) for one in view.table.df.iloc[:, column]]


def test_the_headline_names_size_moment_floor_and_fate(view: MemoryPeakView) -> None:
    said = view.headline.value
    assert "3.00 GiB at the peak" in said
    assert "2.00 GiB above the lowest level afterwards, 1.00 GiB" in said
    assert "2.00 GiB of it is freed afterwards, half of that within 2.00 µs; 1.00 GiB never" in said
    assert view.status.value == ""


def test_who_held_it_by_each_tab(view: MemoryPeakView) -> None:
    assert cells(view, 0) == ["step (optim.py:5)", "forward (model.py:10)"]
    assert list(view.table.df.columns)[1:4] == ["Size (GiB)", "Share (%)", "Blocks"]
    assert cells(view, 1) == ["2.0", "1.0"]
    offered = [group for _, group in view.by.options]
    assert offered == ["line", "module", "phase", "category", "stack", "fate"]  # no steps marked
    for group in offered:
        view.by.value = group
        assert view.status.value == ""
        assert view.table.df["Blocks"].astype(int).sum() == 2
    assert cells(view, 0) == ["freed afterwards", "never freed in the log"]


def test_a_row_marks_its_largest_stack_and_is_unmarked_with_it(view: MemoryPeakView) -> None:
    view.table.selected_rows = [1]
    chosen = view.link.selection
    assert chosen is not None
    assert (chosen.table, chosen.recording) == ("stacks", 0)
    stacks = view.session.table("stacks").set_index("stack")["label"]
    assert stacks[chosen.row] == LINE
    view.link.selection = Selection("stacks", row=999, recording=0)  # somebody else chooses
    assert list(view.table.selected_rows) == []
    assert view.link.selection == Selection("stacks", row=999, recording=0)


def test_the_peak_is_that_of_the_time_shown(view: MemoryPeakView) -> None:
    span = view.session.span
    view.link.window = TimeWindow(span.end_ns - 1_000, span.end_ns)
    assert view.peak is not None
    assert view.peak.peak_bytes == 2 * GIB + MIB
    assert all("onerror" not in name or "<img" in name for name in cells(view, 0))
    assert "<img" not in view.headline.value
    view.link.window = None
    assert view.peak.peak_bytes == 3 * GIB


def test_a_moment_pointed_at_in_place_of_the_peak(view: MemoryPeakView) -> None:
    view.when.value = "moment"
    assert "No moment is pointed at yet" in view.status.value
    view.link.moment_ns = 0
    assert "1.00 GiB live" in view.headline.value
    assert view.status.value == ""
    view.link.moment_ns = 10**15
    assert "does not cover this time" in view.status.value
    assert view.headline.layout.display == "none"
    view.when.value = "peak"
    assert "3.00 GiB at the peak" in view.headline.value
    assert view.headline.layout.display is None


def test_the_button_points_every_view_at_the_peak(view: MemoryPeakView) -> None:
    view._point.click()
    assert view.peak is not None
    assert view.link.moment_ns == view.peak.ts_ns


def test_a_box_of_the_flame_selects_its_largest_stack(view: MemoryPeakView) -> None:
    name = "/job/optim.py(5): step"
    path = int(view.flame.nodes.set_index("name").loc[name, "path"])
    view.flame._received(view.flame, {"kind": "choose", "node": path}, [])
    assert view.link.selection is not None
    assert view.link.selection.table == "stacks"
    assert view.flame.selected == {"table": "stacks", "name": name}
    view.flame._received(view.flame, {"kind": "choose", "node": 10**6}, [])
    assert view.link.selection is None
    assert view.flame.selected == {}


def test_the_drain_ends_at_what_is_never_freed(view: MemoryPeakView) -> None:
    shown = [trace for trace in view.figure.data if trace.visible]
    assert sum(trace.y[0] for trace in shown) == pytest.approx(3.0)
    assert sum(trace.y[-1] for trace in shown) == pytest.approx(1.0)


def test_the_drain_turns_dark_and_follows_from_there(view: MemoryPeakView) -> None:
    view.link.dark = True
    assert view.figure.layout.font.color == DARK.text
    assert view._drain.children[-1] is view.figure
    view.link.window = TimeWindow(view.session.span.end_ns - 1_000, view.session.span.end_ns)
    assert view.figure.layout.font.color == DARK.text
    assert sum(trace.y[0] for trace in view.figure.data if trace.visible) == pytest.approx(
        2 + 1 / 1024
    )


def test_no_memory_and_one_moment_only(samples: Path) -> None:
    nothing = maiprof_nb.load(samples / "leak" / "gpu.csv")
    peak = MemoryPeakView(nothing, LinkState())
    diff = MemoryDiffView(nothing, LinkState())
    for view in (peak, diff):
        assert "_record_memory_history" in view.status.value
    one = Job()
    one.before(GIB)
    state = MemoryDiffView(one.session(), LinkState())
    assert "one moment only" in state.status.value


def test_what_grew_and_from_which_line(session: Session) -> None:
    view = MemoryDiffView(session, LinkState())
    assert "+2.00 GiB between the start of the log (0 ns) and the end of the log" in (
        view.verdict.value
    )
    assert "forward (model.py:10): +2.00 GiB, 2 more blocks" in view.verdict.value
    view.before.when.value = "peak"
    assert f"-{units.size(GIB - MIB)} between the peak" in view.verdict.value
    assert "100.0 % of the 2.00 GiB that shrank is from step (optim.py:5)" in view.verdict.value
    for by in ("line", "category", "stack"):
        view.by.value = by
        assert view.status.value == ""
        assert view.found["grown_bytes"].sum() == MIB - GIB
    view.table.selected_rows = [0]
    assert view.link.selection is not None
    assert "model.py:10" in view.chosen.value


def test_two_moments_of_the_link(session: Session) -> None:
    link = LinkState()
    view = MemoryDiffView(session, link)
    view.before.when.value = "moment"
    assert "no moment is pointed at yet" in view.status.value.lower()
    link.moment_ns = 0
    assert view.status.value == ""
    assert view.found["before_bytes"].sum() == GIB
    view.after.when.value = "window end"
    link.window = TimeWindow(0, 1_500)
    assert view.found["after_bytes"].sum() == 3 * GIB


def test_two_sessions_and_names_from_files_are_text(session: Session) -> None:
    job = growing()
    job.take(4 * GIB, HOSTILE.replace(":11", ":12"))
    view = MemoryDiffView(session, LinkState(), job.session())
    assert [label for label, _ in view.before.source.options] == [
        "first: GPU 0 (snapshot)", "second: GPU 0 (snapshot)"
    ]  # fmt: skip
    assert view.after.source.label.startswith("second")
    assert "+4.00 GiB" in view.verdict.value
    assert "<img" not in view.verdict.value
    view.table.selected_rows = [0]
    assert "<img" not in view.chosen.value
    assert view.link.selection is None  # a stack of another session is none of this link's


def test_the_dashboard_follows_one_choice_of_a_device() -> None:
    dashboard = MemoryDashboard(loaded("leak"))
    assert {one.rule for one in dashboard.findings.findings} >= {"memory-leak", "oom"}
    assert dashboard.peak.device.device == dashboard.memory.device
    dashboard.folds["growth"].button.value = True
    assert "forward (model.py:47)" in dashboard.folds["growth"].children[1].verdict.value


def test_the_key_value_cache_as_bytes_a_token_times_tokens() -> None:
    """Two tensors, each made anew 1 MiB larger for every one of 32 tokens."""
    job = Job()
    cache = "update (/job/kv_cache.py:7)"
    held = [job.take(MIB, cache), job.take(MIB, cache)]
    for token in range(2, 33):
        for tensor in (0, 1):
            made = job.take(token * MIB, cache)
            job.give(held[tensor])
            held[tensor] = made
    said = MemoryPeakView(job.session(), LinkState()).headline.value
    assert "grows by 2.00 MiB a token: x 32 tokens = 64.0 MiB at its largest" in said
