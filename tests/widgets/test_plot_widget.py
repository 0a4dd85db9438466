"""What a plot sends to the browser: its program once, its state again where changes were lost."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import pytest

from maiprof_widgets.views._plot import figure_widget, repainted


@pytest.fixture
def plot() -> go.FigureWidget:
    trace = go.Scatter(x=[1, 2], y=[3, 4], customdata=["a", "b"])
    return figure_widget(go.Figure([trace], layout={"xaxis": {"range": [0, 9]}}))


@pytest.fixture
def sent(plot: go.FigureWidget) -> list[Any]:
    found: list[Any] = []

    def keep(change: Any) -> None:
        if change["new"] is not None:
            found.append(change["new"])

    plot.observe(keep, "_py2js_update")
    return found


def test_a_figure_as_it_was_made_is_not_sent_again(plot: go.FigureWidget, sent: list[Any]) -> None:
    plot.on_drawn()
    assert sent == []


def test_what_changed_before_the_browser_listened_is_said_again(
    plot: go.FigureWidget, sent: list[Any]
) -> None:
    plot.layout.xaxis.range = [4, 5]
    plot.data[0].y = [7, 8]
    plot.data[0].customdata = None
    sent.clear()  # lost
    plot.on_drawn()
    (said,) = sent
    assert list(said["layout_data"]["xaxis"]["range"]) == [4, 5]
    assert [list(y) for y in said["style_data"]["y"]] == [[7, 8]]
    assert said["style_data"]["customdata"] == [None]  # null: plotly takes it away
    assert said["style_traces"] == [0]


def test_a_repainted_plot_says_all_of_the_new_figure(
    plot: go.FigureWidget, sent: list[Any]
) -> None:
    repainted(plot, go.Figure([go.Scatter(x=[5], y=[6])], layout={"font": {"color": "red"}}))
    sent.clear()
    plot.on_drawn()
    assert sent[0]["layout_data"]["font"] == {"color": "red"}
    assert list(sent[0]["layout_data"]["xaxis"]["range"]) == [0, 9]
    assert [list(x) for x in sent[0]["style_data"]["x"]] == [[5]]


def test_plots_share_the_program(plot: go.FigureWidget) -> None:
    """It is 5 MB."""
    other = figure_widget(go.Figure())
    assert plot.get_state()["_plotly"] == other.get_state()["_plotly"]
    assert len(plot.get_state()["_esm"]) < 5_000
