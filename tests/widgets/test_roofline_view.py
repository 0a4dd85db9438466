"""The roofline: what is drawn, what a click chooses, and what is said where it cannot be drawn."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from maiprof_nb.analysis.device_peaks import known_peaks
from maiprof_nb.timebase import TimeWindow
from maiprof_widgets import LinkState, RooflineView, Selection
from tests import tiny_traces as tiny

A100 = [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "totalGlobalMem": 84_986_691_584}]
TYPES = {"Input type": ["c10::Half"] * 3}
SQUARE = {"Input Dims": [[4096, 4096], [4096, 4096]]}
HEADS = {"Input Dims": [[2, 8, 512, 64]] * 3, "Concrete Inputs": ["", "", "", "", "0.", "False"]}
ATTENTION = "aten::scaled_dot_product_attention"


def session(name: str = "aten::mm", **more: object):
    """A product for 1 ms and, later, attention for 1 ms."""
    return tiny.session(
        tiny.operator(name, 1000, 30, **{"External id": 1}, **SQUARE, **TYPES),
        tiny.kernel(1100, 1000, **{"External id": 1}),
        tiny.operator(ATTENTION, 1040, 30, **{"External id": 2}, **HEADS, **TYPES),
        tiny.kernel(2200, 1000, **{"External id": 2}),
        **{"deviceProperties": A100, **more},
    )


def trace(view: RooflineView, name: str):
    return next(trace for trace in view.figure.data if trace.name == name)


def test_points_and_roofs() -> None:
    view = RooflineView(session(), LinkState())
    assert view.status.value == ""
    product = trace(view, "matrix product")
    # 2 n^3 operations in 1 ms; three matrices of n^2 half-precision numbers
    assert list(product.y) == pytest.approx([2 * 4096**3 / 1e-3])
    assert list(product.x) == pytest.approx([2 * 4096**3 / (3 * 4096**2 * 2)])
    assert len(trace(view, "attention").x) == 1
    assert len(trace(view, "convolution").x) == 0
    labels = {note.text for note in view.figure.layout.annotations}
    assert {"fp16 = bf16 312 TFLOP/s", "tf32 156 TFLOP/s", "memory 2039 GB/s"} <= labels
    heights = [y for y in trace(view, "solid roofs").y if y is not None]
    assert heights[-1] == 312e12  # the level that half precision is held against
    assert next(peaks for peaks in known_peaks() if peaks.device == "A100 80GB SXM").source in (
        view.words.value
    )


def test_a_point_and_a_row_choose_their_operator() -> None:
    link = LinkState()
    view = RooflineView(session(), link)
    view._on_click(trace(view, "attention"), SimpleNamespace(point_inds=[0]), None)
    assert link.selection == Selection("operators", name=ATTENTION)
    assert len(trace(view, "chosen").x) == 1
    assert view.table.names[view.table.rows.selected_rows[0]] == ATTENTION
    view.table.rows.selected_rows = [view.table.names.index("aten::mm")]
    assert link.selection == Selection("operators", name="aten::mm")
    view.table.rows.selected_rows = []
    assert link.selection is None
    assert len(trace(view, "chosen").x) == 0


def test_it_follows_the_window() -> None:
    link = LinkState()
    view = RooflineView(session(), link)
    link.window = TimeWindow(1_100_000, 2_500_000)
    assert view.found["name"].tolist() == [ATTENTION]
    assert view.table.names == [ATTENTION]
    link.window = TimeWindow(0, 50_000)
    assert view.found.empty
    assert "launched work here" in view.words.value
    link.window = None
    assert len(view.found) == 2
    assert view.status.value == ""


def test_unknown_peaks_are_no_roofs() -> None:
    view = RooflineView(
        session(deviceProperties=[{"id": 0, "name": "Some <b>GPU</b>"}]), LinkState()
    )
    assert "the peaks of Some &lt;b&gt;GPU&lt;/b&gt; are not known" in view.words.value
    assert len(trace(view, "solid roofs").x) == 0
    assert len(trace(view, "matrix product").x) == 1


def test_without_types_there_are_rates_but_no_points() -> None:
    """As in the simulated samples: shapes alone give operations, not bytes."""
    only = tiny.session(
        tiny.operator("aten::mm", 1000, 30, **{"External id": 1}, **SQUARE),
        tiny.kernel(1100, 1000, **{"External id": 1}),
        deviceProperties=A100,
    )
    view = RooflineView(only, LinkState())
    assert "1 of 1 rows have no recorded types" in view.words.value
    assert len(trace(view, "matrix product").x) == 0
    assert math.isnan(view.found["intensity"].iloc[0])


def test_without_shapes_it_says_what_recording_them_would_answer() -> None:
    bare = tiny.session(
        tiny.operator("aten::mm", 1000, 30, **{"External id": 1}),
        tiny.kernel(1100, 1000, **{"External id": 1}),
    )
    view = RooflineView(bare, LinkState())
    assert len(view.children) == 1
    assert "record_shapes=True" in view.status.value
    assert "the operations and bytes of each call" in view.status.value
