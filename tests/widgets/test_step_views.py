"""The views of steps 2, 4 and of the fixes: their Python halves, without a browser."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

import maiprof_nb
from maiprof_nb.analysis.phase_steps import phase_steps
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow
from maiprof_widgets import (
    GapsView,
    IcicleView,
    JobStatesView,
    LinkState,
    PhaseStepsView,
    Selection,
)
from maiprof_widgets.figures.phase_steps import binned

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
    node = next(
        number
        for number, code in enumerate(view.picture["name"])
        if "decode_row" in view.picture["names"][code]
    )
    assert view.picture["own"][node]
    view._received(view, {"kind": "choose", "node": node}, [])
    assert link.selection == Selection("python_calls", name="recommender/table.py(84): decode_row")
    assert view.selected["name"] == "recommender/table.py(84): decode_row"
    link.window = TimeWindow(0, SECOND)  # before the first step there are no gaps
    assert "no moment" in view.picture["empty"]
    view._received(view, {"kind": "choose", "node": 10**9}, [])
    assert link.selection is None


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
    view._on_drawn()
    assert view.status.value == ""


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
