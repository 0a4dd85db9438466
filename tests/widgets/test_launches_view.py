"""Launches over time and the operators that lag behind, linked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import maiprof_nb
from maiprof_nb.timebase import TimeWindow
from maiprof_widgets import LaunchesView, LinkState, Selection
from tests import tiny_traces as tiny

US = 1000


def work(count: int = 4) -> list[tiny.Event]:
    """Every 50 us a launch of 5 us of work, by `aten::add`, then as many by `aten::<b>`."""
    events = []
    for number in range(2 * count):
        at = 1000 + 50 * number
        events += [
            tiny.operator("aten::add" if number < count else "aten::<b>", at, 40),
            tiny.launch(number, at + 10),
            tiny.kernel(at + 20, 5, correlation=number),
        ]
    return events


def test_the_curves_and_the_table_follow_the_window() -> None:
    link = LinkState()
    view = LaunchesView(tiny.session(*work()), link)
    assert view.status.value == ""
    assert len(view.figure.data) == 3
    assert view.table.names == ["aten::add", "aten::<b>"]  # the last has no next launch
    assert "8 launches" in view.words.value
    link.window = TimeWindow(0, 200 * US)
    assert view.table.names == ["aten::add"]
    assert "4 launches" in view.words.value
    assert view.figure.layout.xaxis.range == (0, 200)


def test_a_row_chooses_its_operator_and_follows_others() -> None:
    link = LinkState()
    view = LaunchesView(tiny.session(*work()), link)
    view.table.rows.selected_rows = [1]
    assert link.selection == Selection("operators", name="aten::<b>")
    link.selection = Selection("operators", name="aten::add")
    assert list(view.table.rows.selected_rows) == [0]
    link.selection = Selection("kernels", name="aten::add")
    assert list(view.table.rows.selected_rows) == []
    assert link.selection == Selection("kernels", name="aten::add")


def test_many_devices_are_rows_of_colour_that_json_can_carry(corpus: Path) -> None:
    """Eight ranks; in most bins no work starts, so that there is no delay to show."""
    view = LaunchesView(maiprof_nb.load(corpus / "kineto" / "param-dlrm-8ranks"), LinkState())
    assert [trace.type for trace in view.figure.data] == ["heatmap"] * 3
    for trace in view.figure.data:
        assert len(trace.z) == 8
        json.dumps(trace.z.tolist(), allow_nan=False)


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([tiny.operator("aten::mm", 1000, 5)], "no device work"),
        ([tiny.kernel(1000, 5)], "No launch calls were recorded"),
    ],
)
def test_what_is_missing_is_one_sentence(events: list[tiny.Event], words: str) -> None:
    link = LinkState()
    view = LaunchesView(tiny.session(*events), link)
    assert len(view.children) == 1
    assert words in view.status.value
    link.window = TimeWindow(0, 10)  # and it stays alive
