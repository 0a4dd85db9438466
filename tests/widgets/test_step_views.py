"""The views of steps 2, 4 and of the fixes: their Python halves, without a browser."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

import maiprof_nb
from maiprof_nb import units
from maiprof_nb.analysis.phase_steps import phase_steps
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow
from maiprof_widgets import (
    GapFunctionsView,
    GapsView,
    IcicleView,
    JobStatesView,
    LinkState,
    PhaseStepsView,
    PhasesView,
    Selection,
    UtilisationView,
)
from maiprof_widgets.figures.phase_steps import binned
from maiprof_widgets.figures.theme import DARK, LIGHT
from tests import tiny_traces as tiny

SECOND = 1_000_000_000


@pytest.fixture(scope="module")
def before(samples: Path) -> Session:
    return maiprof_nb.load(samples / "case_study" / "before")


@pytest.fixture(scope="module")
def cpu_job(samples: Path) -> Session:
    return maiprof_nb.load(samples / "cpu_job" / "recording")


def test_a_row_of_the_gaps_leads_there_and_stays(before: Session) -> None:
    """The longest gap is the second read of a sub-dataset (README: every 20th step)."""
    link = LinkState()
    view = GapsView(before, link)
    assert view.status.value == ""
    longest = view.rows.iloc[0]
    assert longest["cause"] == "input"
    assert longest["user_line"] == "recommender/table.py(31): read_sub_dataset"
    view.table.selected_rows = [0]
    assert link.window is not None
    assert link.window.start_ns < longest["ts_ns"]
    assert link.window.end_ns > longest["ts_ns"] + longest["dur_ns"]
    assert len(view.rows) > 1
    assert link.moment_ns == longest["ts_ns"]
    said = view.chosen.value
    assert "Your line, with most time in the gap" in said
    assert "recommender/table.py(31): read_sub_dataset" in said
    assert f"{longest['pid']} / {longest['tid']}" in said
    assert f"input {units.duration(longest['input_ns'])}" in said


def test_a_gap_without_line_of_its_own_says_who_launched_what_ends_it() -> None:
    """Nothing is recorded between the kernels but the launch; names from files are escaped."""
    job = tiny.session(
        tiny.python("<b>.py(1): late", 1190, 10),
        tiny.launch(1, 1000),
        tiny.kernel(1010, 10, correlation=1),
        tiny.launch(2, 1191),
        tiny.kernel(1300, 10, correlation=2),
        tiny.python("a<b>.py(2): other", 1400, 10),
        tiny.launch(3, 1401),
        tiny.kernel(1405, 10, correlation=3),
        tiny.launch(4, 1402),
        tiny.kernel(1450, 10, correlation=4),
    )
    view = GapsView(job, LinkState())
    assert view.status.value == ""
    view.table.selected_rows = [int((view.rows["line_of"] == "launch").argmax())]
    assert "the launch that ends it came from: <code>a&lt;b&gt;.py(2): other" in view.chosen.value


def test_frames_from_stacks_are_said_to_be_bounds(before: Session) -> None:
    stack = {"Call stack": "model.py(7): forward;train.py(1): main"}
    old = tiny.session(
        tiny.operator("aten::mm", 1020, 20, **stack), tiny.kernel(1000, 10), tiny.kernel(1050, 10)
    )
    assert "lower bound" in IcicleView(old).picture["facts"]
    assert "lower bound" in GapFunctionsView(old).children[1].value
    assert "lower bound" not in IcicleView(before).picture["facts"]
    assert len(GapFunctionsView(before).children) == 2  # the table and the status line


def test_gaps_follow_the_window(before: Session) -> None:
    link = LinkState()
    view = GapsView(before, link)
    link.window = TimeWindow(10 * SECOND, 11 * SECOND)
    end = view.rows["ts_ns"] + view.rows["dur_ns"]
    assert len(view.rows)
    assert (end > link.window.start_ns).all()
    assert (view.rows["ts_ns"] < link.window.end_ns).all()


def test_views_say_what_is_missing(cpu_job: Session) -> None:
    view = GapsView(cpu_job, LinkState())
    assert "maiprof-missing" in view.status.value
    icicle = IcicleView(cpu_job)
    assert "ProfilerActivity.CUDA" in icicle.picture["empty"]
    icicle.gaps_only = False
    assert "empty" not in icicle.picture
    assert any("sharded_iterrows" in name for name in icicle.picture["names"])


def test_the_icicle_follows_and_selects(before: Session) -> None:
    link = LinkState()
    view = IcicleView(before, link)
    nodes = view.picture
    node = next(n for n, code in enumerate(nodes["name"]) if "decode_row" in nodes["names"][code])
    assert nodes["own"][node]
    view._received(view, {"kind": "choose", "node": nodes["path"][node]}, [])
    assert link.selection == Selection("python_calls", name="recommender/table.py(84): decode_row")
    assert view.selected["name"] == "recommender/table.py(84): decode_row"
    link.window = TimeWindow(0, SECOND)  # before the first step there are no gaps
    assert "no moment" in view.picture["empty"]
    view._received(view, {"kind": "choose", "node": 10**9}, [])
    assert link.selection is None


def test_looking_into_a_box_brings_what_was_too_small(before: Session) -> None:
    """Of the whole, 0.2 % is the least; of a box that has 2 %, a fiftieth of that."""
    view = IcicleView(before, gaps_only=False)
    nodes = view.picture
    total = sum(
        ns for ns, parent in zip(nodes["total"], nodes["parent"], strict=True) if parent < 0
    )
    small = [
        row for row, ns in enumerate(nodes["pruned"]) if ns and nodes["total"][row] < total / 20
    ]
    top = max(small, key=lambda row: nodes["pruned"][row])
    view._received(view, {"kind": "look", "node": nodes["path"][top]}, [])
    finer = view.finer["nodes"]
    assert view.finer["under"] == finer["path"][0] == nodes["path"][top]
    assert finer["total"][0] == nodes["total"][top]
    assert finer["pruned"][0] < nodes["pruned"][top]
    assert set(finer["path"]) - set(nodes["path"])
    known = dict(zip(nodes["path"], nodes["total"], strict=True))
    again = [
        known[path] == ns
        for path, ns in zip(finer["path"], finer["total"], strict=True)
        if path in known
    ]
    assert again
    assert all(again)
    answer = view.finer["answer"]
    view._received(view, {"kind": "look", "node": 10**9}, [])  # never sent: not answered
    assert view.finer["answer"] == answer


def test_a_bar_leads_to_its_step_and_slow_steps_are_marked(before: Session) -> None:
    link = LinkState()
    view = PhaseStepsView(before, link)
    assert view.status.value == ""
    marks = view.figure.data[-1]
    assert [text.split(":")[0] for text in marks.text] == ["slow step 20", "slow step 40"]
    view._on_click(None, SimpleNamespace(xs=[3]), None)
    step = phase_steps(before).query("step == 7").iloc[0]  # the first recorded step is 4
    assert link.window == TimeWindow(step["ts_ns"], step["ts_ns"] + step["dur_ns"])
    link.dark = True
    assert view.figure.layout.font.color == DARK.text
    assert view.status.value == ""


def test_plots_turn_dark(before: Session) -> None:
    link = LinkState()
    made = {"a": before}, {"a": 393_216}
    views = [PhasesView(before, link), JobStatesView(*made, link), UtilisationView(before, link)]
    assert [view.figure.layout.font.color for view in views] == [LIGHT.text] * 3
    link.dark = True
    assert [view.figure.layout.font.color for view in views] == [DARK.text] * 3
    assert [view.status.value for view in views] == [""] * 3


def test_ranks_share_one_plot_whatever_phases_they_have() -> None:
    """Rank 0 has an optimizer, rank 1 has none."""
    first = [tiny.step(1, 1000, 100), tiny.operator("Optimizer.step#SGD.step", 1010, 50)]
    second = [tiny.step(1, 1000, 100), tiny.operator("aten::mm", 1010, 50)]
    link = LinkState()
    view = PhaseStepsView(tiny.ranks(first, second), link)

    def shown() -> list[str]:
        return [
            trace.name for trace in view.figure.data if trace.type == "bar" and trace.showlegend
        ]

    assert "optimizer" in shown()
    link.ranks = (1,)
    assert view.status.value == ""
    assert "optimizer" not in shown()


def test_many_steps_share_bars(before: Session) -> None:
    found = phase_steps(before)
    bars = binned(found, max_bars=10)
    assert bars["bar"].nunique() == 10  # 48 steps, 5 a bar
    first = bars[bars["bar"] == 0].iloc[0]
    assert (first["first_step"], first["last_step"]) == (4, 8)
    mean = found[found["step"] <= 8].groupby("phase", observed=False)["host_ns"].mean()
    pd.testing.assert_series_equal(
        bars[bars["bar"] == 0].set_index("phase")["host_ns"], mean, check_names=False
    )


def test_states_are_a_table_and_bars(before: Session) -> None:
    view = JobStatesView({"a": before, "b": before}, {"a": 393_216, "b": 393_216}, LinkState())
    assert view.status.value == ""
    assert "407 k" in view.children[0].value
    missing = JobStatesView({"a": before}, {}, LinkState())
    assert "not stated for a" in missing.status.value
