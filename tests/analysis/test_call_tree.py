"""Following the tree down, on trees small enough to add up by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

import maiprof_nb
from maiprof_nb.analysis.call_tree import callees, callers, heaviest_path
from maiprof_nb.analysis.operator_ranking import operator_ranking
from maiprof_nb.analysis.python_ranking import python_ranking
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow
from tests import tiny_traces as tiny

US = 1000


@pytest.fixture
def tree() -> Session:
    """Two blocks: 100 µs (linear 60, of which addmm 50; relu 10) and 50 µs (linear 20)."""
    return tiny.session(
        tiny.operator("block", 1000, 100),
        tiny.operator("aten::linear", 1010, 60),
        tiny.operator("aten::addmm", 1015, 50),
        tiny.operator("aten::relu", 1080, 10),
        tiny.operator("block", 1200, 50),
        tiny.operator("aten::linear", 1210, 20),
        tiny.operator("aten::linear", 1300, 7),
    )


def table(found, *columns: str):
    names = found["name"].astype("object").fillna("")
    return {
        name: tuple(int(row[column]) // (US if column.endswith("_ns") else 1) for column in columns)
        for name, (_, row) in zip(names, found.iterrows(), strict=True)
    }


def test_callees_by_hand(tree: Session):
    found = callees(tree, "block")
    assert table(found, "calls", "total_ns", "self_ns") == {
        "aten::linear": (2, 80, 30),
        "aten::relu": (1, 10, 10),
    }
    assert found["share"].tolist() == pytest.approx([80 / 150, 10 / 150])
    assert callees(tree, "aten::relu").empty
    assert callees(tree, "no such name").empty


def test_callers_add_up_to_all_calls(tree: Session):
    found = callers(tree, "aten::linear")
    assert table(found, "calls", "total_ns", "self_ns") == {
        "block": (2, 80, 30),
        "": (1, 7, 7),
    }
    assert found["share"].sum() == pytest.approx(1)


def test_a_path_counts_only_the_calls_on_it(tree: Session):
    assert table(callees(tree, ["block", "aten::linear"]), "calls", "total_ns") == {
        "aten::addmm": (1, 50)
    }
    assert table(callers(tree, ["block", "aten::linear"]), "calls") == {"block": (2,)}
    assert callees(tree, ["aten::relu", "aten::linear"]).empty


def test_the_heaviest_path_stops_where_the_own_time_is(tree: Session):
    assert heaviest_path(tree, "block") == ["block", "aten::linear", "aten::addmm"]
    assert heaviest_path(tree, "aten::relu") == ["aten::relu"]
    # the second block's own 30 µs outweigh its linear's 20: one has arrived
    assert heaviest_path(tree, "block", window=TimeWindow(200 * US, 250 * US)) == ["block"]


def test_a_window_keeps_whole_calls_that_overlap_it(tree: Session):
    first = TimeWindow(90 * US, 95 * US)  # inside the first block, after all of its callees
    assert table(callees(tree, "block", window=first), "calls", "total_ns") == {
        "aten::linear": (1, 60),
        "aten::relu": (1, 10),
    }


def test_recursion_and_threads():
    session = tiny.session(
        tiny.operator("f", 1000, 100),
        tiny.operator("f", 1010, 50),
        tiny.operator("g", 1070, 10),
        tiny.operator("g", 1005, 10, tid=tiny.AUTOGRAD),
    )
    assert table(callees(session, "f"), "calls", "total_ns") == {"f": (1, 50), "g": (1, 10)}
    assert table(callers(session, "g"), "total_ns") == {"f": (10,), "": (10,)}


def test_python_functions_are_in_the_tree_on_demand():
    session = tiny.session(
        tiny.annotation("mine", 1000, 100),
        tiny.python("a.py(3): f", 1010, 60),
        tiny.operator("aten::mm", 1020, 30),
    )
    assert callees(session, "mine")["name"].tolist() == ["aten::mm"]
    assert callees(session, "mine", with_python=True)["name"].tolist() == ["a.py(3): f"]
    found = python_ranking(session)
    assert table(found, "calls", "total_ns", "self_ns") == {"a.py(3): f": (1, 60, 30)}
    assert python_ranking(session, window=TimeWindow(0, 10 * US)).empty


def test_own_time_and_callees_add_up_exactly_in_a_real_shape(samples: Path):
    session = maiprof_nb.load(samples / "case_study" / "before")
    for row in operator_ranking(session).itertuples():
        below = callees(session, row.name)
        assert below["total_ns"].sum() + row.self_ns == row.total_ns
        assert callers(session, row.name)["calls"].sum() == row.calls


def test_nothing_recorded():
    for session in (tiny.session(), tiny.session(tiny.kernel(1, 1))):
        assert callees(session, "f").empty
        assert callers(session, "f").empty
        assert heaviest_path(session, "f") == ["f"]
        assert python_ranking(session).empty
