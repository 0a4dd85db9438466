"""Colours and plotly layout of every figure, light and dark.

The series colours are those of Okabe and Ito, chosen to be told apart by people with
colour-blindness; the first two are slightly deepened for light and raised for dark ground.
"""

from __future__ import annotations

from dataclasses import dataclass

import plotly.graph_objects as go

# The same as in memory.js (its padding and margins), so that the time axes stand in line.
LEFT_PX, RIGHT_PX = 70, 22
_CLEAR = "rgba(0,0,0,0)"  # the page's own ground shows


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours of one ground."""

    ground: str
    text: str
    faint: str
    grid: str
    series: tuple[str, ...]
    mark: str
    alarm: str
    step: str


LIGHT = Theme(
    ground="#ffffff",
    text="#1f2328",
    faint="#59636e",
    grid="#e4e7eb",
    series=("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8c6d00", "#56b4e9", "#e69f00", "#4d4d4d"),
    mark="#b3005e",
    alarm="#b3261e",
    step="#8c959f",
)
DARK = Theme(
    ground="#111418",
    text="#e6e9ed",
    faint="#9aa4af",
    grid="#2b3138",
    series=("#56b4e9", "#ff8a3d", "#2fc79a", "#e39bc4", "#f0e442", "#5aa0d6", "#e69f00", "#bfbfbf"),
    mark="#ff6ab0",
    alarm="#ff8a80",
    step="#6b7682",
)


def theme(*, dark: bool) -> Theme:
    """The colours for a dark or a light page."""
    return DARK if dark else LIGHT


def layout(*, dark: bool) -> go.Layout:
    """What all figures share: fonts, ground, margins, no logo, no double-click surprise."""
    colours = theme(dark=dark)
    axis = {
        "gridcolor": colours.grid,
        "linecolor": colours.grid,
        "zerolinecolor": colours.grid,
        "tickcolor": colours.grid,
        "ticks": "outside",
        "automargin": False,
        "tickfont": {"size": 11, "color": colours.faint},
        "title": {"font": {"size": 11.5}},
    }
    return go.Layout(
        paper_bgcolor=_CLEAR,
        plot_bgcolor=_CLEAR,
        font={"color": colours.text, "size": 12, "family": "system-ui, sans-serif"},
        margin={"l": LEFT_PX, "r": RIGHT_PX, "t": 28, "b": 44},
        modebar={"bgcolor": _CLEAR, "color": colours.faint, "activecolor": colours.text},
        xaxis=axis,
        yaxis=axis,
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 1, "xanchor": "right"},
        hovermode="x unified",
        hoverlabel={
            "bgcolor": colours.ground,
            "bordercolor": colours.grid,
            "font": {"color": colours.text, "size": 12},
        },
        dragmode="zoom",
    )
