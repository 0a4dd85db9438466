"""Panels of curves as plotly gets them: checked by their data, not by pictures."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from maiprof_nb.timebase import TimeWindow
from maiprof_widgets.figures.panels import (
    Curve,
    Panel,
    axis_range,
    panel_title,
    panels_figure,
    points,
    time_scale,
)
from maiprof_widgets.figures.theme import DARK, LEFT_PX, LIGHT, RIGHT_PX, theme
from maiprof_widgets.figures.utilisation import gpu_panel, host_panel, marks_panel

MS = 1_000_000
WINDOW = TimeWindow(0, 10 * MS)
NO_METRICS = pd.DataFrame(
    {name: [] for name in ("recording", "device", "counter", "ts_ns", "value", "scale")}
)


def use(what: str, *series: str) -> pd.DataFrame:
    """Two bins of 5 ms a series: busy 0.25, then 1."""
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "series": label,
                    "what": what,
                    "ts_ns": [0, 5 * MS],
                    "dur_ns": [5 * MS] * 2,
                    "value": [0.25, 1.0],
                }
            )
            for label in series
        ],
        ignore_index=True,
    )


@pytest.mark.parametrize(
    ("span_ns", "unit"),
    [(1_999_999, "µs"), (2_000_000, "ms"), (1_999_999_999, "ms"), (2_000_000_000, "s")],
)
def test_unit_of_the_time_axis_follows_the_span(span_ns: int, unit: str) -> None:
    assert time_scale(span_ns).unit == unit


def test_a_range_of_the_axis_and_a_window_are_each_others_inverse() -> None:
    scale = time_scale(50 * MS)
    window = TimeWindow(1_234_567, 40 * MS)
    assert scale.window(*axis_range(window, scale)) == window
    assert scale.window(3.0, 1.0) == TimeWindow(1 * MS, 3 * MS)  # dragged from right to left
    assert scale.window(3.0, 3.0).dur_ns == 1


def test_few_devices_are_curves_in_percent() -> None:
    panel = gpu_panel(use("gpu", "rank 0, GPU 0"), NO_METRICS)
    (curve,) = panel.curves
    assert curve.style == "area"
    assert list(curve.values) == [25.0, 100.0]
    assert [c.style for c in gpu_panel(use("gpu", "a", "b"), NO_METRICS).curves] == ["line"] * 2


def test_many_devices_are_rows_of_colour() -> None:
    labels = [f"rank {rank}, GPU {rank}" for rank in range(8)]
    panel = gpu_panel(use("gpu", *labels), NO_METRICS)
    (heat,) = panel.curves
    assert panel.heat
    assert np.shape(heat.values) == (8, 2)
    assert heat.text == tuple(f"rank {rank}" for rank in range(8))
    assert heat.ts_ns.tolist() == [0, 5 * MS, 10 * MS]  # edges: one more than bins
    figure = panels_figure([panel], window=WINDOW, scale=time_scale(10 * MS), dark=False)
    (trace,) = figure.data
    assert trace.type == "heatmap"
    assert (trace.zmin, trace.zmax) == (0, 100)
    assert figure.layout.yaxis.autorange == "reversed"  # rank 0 on top


def test_rows_of_one_rank_with_several_devices_keep_both_names() -> None:
    panel = gpu_panel(use("gpu", *(f"rank 0, GPU {n}" for n in range(3))), NO_METRICS)
    assert panel.curves[0].text == ("0 / GPU 0", "0 / GPU 1", "0 / GPU 2")


def test_host_curves_are_named_for_what_they_count() -> None:
    both = pd.concat([use("framework", "rank 0 host"), use("recorded", "rank 0 host")])
    panel = host_panel(both)
    assert [curve.name for curve in panel.curves] == [
        "in operators and launch calls",
        "in any recorded event",
    ]
    assert "not CPU utilisation" in panel.title


def test_a_panel_without_curves_says_what_to_record_and_is_low() -> None:
    empty = gpu_panel(use("framework", "host"), NO_METRICS)
    figure = panels_figure([empty], window=WINDOW, scale=time_scale(10 * MS), dark=False)
    texts = [note.text for note in figure.layout.annotations]
    assert any("ProfilerActivity.CUDA" in text for text in texts)
    full = panels_figure(
        [gpu_panel(use("gpu", "GPU 0"), NO_METRICS)],
        window=WINDOW,
        scale=time_scale(10 * MS),
        dark=False,
    )
    assert figure.layout.height < full.layout.height / 2


def test_marks_are_broken_lines_with_their_words() -> None:
    steps = pd.DataFrame({"step": [4, 5], "ts_ns": [0, 5 * MS], "dur_ns": [5 * MS] * 2})
    calls = pd.DataFrame({"ts_ns": [1 * MS], "end_ns": [2 * MS], "calls": [3]})
    panel = marks_panel(steps, calls, "aten::add", ("#111111", "#222222"))
    marks = panel.curves[1]
    data = points(marks, time_scale(10 * MS))
    assert np.array_equal(data["x"], [1.0, 2.0, np.nan], equal_nan=True)
    assert marks.text == ("aten::add: 3 calls, 1.00 ms", "aten::add: 3 calls, 1.00 ms", "")
    assert panel.title == "Steps, and calls of aten::add"


def test_title_holds_the_key_and_shortens_a_long_one() -> None:
    none = np.empty(0, dtype=np.int64)
    curves = tuple(Curve(f"c{n}", none, none.astype(float)) for n in range(6))
    text = panel_title(Panel("T", "%", curves), LIGHT.series)
    assert "c3" in text
    assert "c4" not in text
    assert text.endswith("and 2 more")


@pytest.mark.parametrize("dark", [False, True])
def test_the_pages_own_ground_shows_and_axes_stand_in_line(dark: bool) -> None:
    panel = gpu_panel(use("gpu", "GPU 0"), NO_METRICS)
    figure = panels_figure([panel], window=WINDOW, scale=time_scale(10 * MS), dark=dark)
    assert figure.layout.paper_bgcolor == figure.layout.plot_bgcolor == "rgba(0,0,0,0)"
    assert (figure.layout.margin.l, figure.layout.margin.r) == (LEFT_PX, RIGHT_PX)
    assert figure.layout.yaxis.automargin is False
    assert figure.layout.font.color == theme(dark=dark).text


def contrast(one: str, other: str) -> float:
    """Contrast ratio as WCAG 2 defines it."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK])
def test_text_and_first_curves_can_be_read_on_their_ground(colours) -> None:
    assert contrast(colours.text, colours.ground) > 7
    assert contrast(colours.faint, colours.ground) > 4.5
    for colour in (*colours.series[:3], colours.mark):
        assert contrast(colour, colours.ground) > 3
