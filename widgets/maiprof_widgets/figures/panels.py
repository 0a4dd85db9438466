"""Curves in stacked panels over one time axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from maiprof_nb.timebase import TimeWindow
from maiprof_widgets.figures.theme import Theme, layout, theme

Floats = npt.NDArray[np.float64]
_UNITS = ((2_000_000, "µs", 1_000), (2_000_000_000, "ms", 1_000_000))
_SIGNS = {
    "area": "\N{BLACK SQUARE}",
    "line": "\N{HORIZONTAL BAR}",
    "dash": "\N{BOX DRAWINGS LIGHT TRIPLE DASH HORIZONTAL}",
}
_MAX_KEYS = 4
_SPACE_PX, _TOP_PX, _BOTTOM_PX = 34, 30, 46
_EMPTY_PX = 20


@dataclass(frozen=True, slots=True)
class TimeScale:
    """The unit of a time axis and how many ns it holds."""

    unit: str
    ns: int
    title: str = "time from the start of the session"

    @property
    def named(self) -> str:
        """Title of the axis with its unit."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    def of(self, ts_ns: npt.NDArray[np.int64]) -> Floats:
        """Session ns -> axis units, as float64 (what plotly sends as binary)."""
        return np.asarray(ts_ns, dtype=np.float64) / self.ns

    def window(self, first: float, last: float) -> TimeWindow:
        """A range of the axis -> a window in session ns."""
        low, high = sorted((round(first * self.ns), round(last * self.ns)))
        return TimeWindow(low, max(high, low + 1))


def time_scale(span_ns: int) -> TimeScale:
    """Microseconds, milliseconds or seconds, by the length of the whole recording."""
    for limit, unit, unit_ns in _UNITS:
        if span_ns < limit:
            return TimeScale(unit, unit_ns)
    return TimeScale("s", 1_000_000_000)


@dataclass(frozen=True)
class Curve:
    """One line of a panel, in session ns and the panel's unit.

    ``style`` is ``area``, ``line``, ``dash``, ``segments`` (pairs of points with gaps) or
    ``heat``: one row of colour for each name in ``text``, where ``values`` has a row each.
    With ``steps`` each value of a line holds until the next, as those of an area always do.
    """

    name: str
    ts_ns: npt.NDArray[np.int64]
    values: Floats
    style: str = "line"
    text: tuple[str, ...] = ()
    colour: str | None = None
    width: float = 1.5
    steps: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment marked across all panels, with a word above it."""

    ts_ns: int
    colour: str
    text: str = ""


@dataclass(frozen=True)
class Panel:
    """One row of the picture."""

    title: str
    unit: str
    curves: tuple[Curve, ...]
    height_px: int = 130
    bounds: tuple[float, float] | None = None
    empty: str = "nothing recorded"
    ticks: dict[float, str] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Nothing to draw in any curve."""
        return not any(len(curve.ts_ns) for curve in self.curves)

    @property
    def heat(self) -> bool:
        """Rows of colour instead of curves."""
        return any(curve.style == "heat" for curve in self.curves)

    @property
    def shown_px(self) -> int:
        """Height: a sentence needs less than curves."""
        return _EMPTY_PX if not self.curves else self.height_px


def panels_figure(
    panels: list[Panel],
    *,
    window: TimeWindow,
    scale: TimeScale,
    dark: bool,
    marks: Sequence[Mark] = (),
) -> go.Figure:
    """The whole picture: panels from top to bottom over one time axis.

    Parameters
    ----------
    panels : list of Panel
        At least one.
    window : TimeWindow
        Time shown, in ns of the session.
    scale : TimeScale
        Unit of the time axis.
    dark : bool
        Dark or light ground.
    marks : sequence of Mark
        Moments to mark.
    """
    colours = theme(dark=dark)
    total = _TOP_PX + sum(p.shown_px + _SPACE_PX for p in panels) - _SPACE_PX + _BOTTOM_PX
    plot = total - _TOP_PX - _BOTTOM_PX
    figure = go.Figure(layout=layout(dark=dark))
    top = 1.0
    for number, panel in enumerate(panels, start=1):
        bottom = max(0.0, top - panel.shown_px / plot)
        _add_axis(figure, panel, number, (bottom, top), colours)
        for position, curve in enumerate(panel.curves):
            default = colours.series[position % len(colours.series)]
            figure.add_trace(_trace(curve, number, scale, curve.colour or default, panel))
        top = bottom - _SPACE_PX / plot
    figure.update_layout(
        height=total,
        autosize=True,
        showlegend=False,
        shapes=mark_lines(marks, window, scale),
        margin={"t": _TOP_PX, "b": _BOTTOM_PX},
        xaxis={
            "title": {"text": scale.named, "standoff": 6},
            "range": axis_range(window, scale),
            "anchor": "free",
            "position": 0.0,
            "exponentformat": "none",
            "unifiedhovertitle": {"text": f"%{{x:.6~f}} {scale.unit or scale.title}"},
            "spikecolor": colours.faint,
            "spikethickness": 1,
            "spikedash": "dot",
            "nticks": 12,
        },
    )
    return figure


def panel_title(panel: Panel, series: tuple[str, ...]) -> str:
    """The panel's title with the key to its curves, in their colours."""
    named = [c for c in panel.curves if c.style != "segments"]
    if panel.heat and panel.bounds:
        most = f"{panel.bounds[1]:g} {panel.unit}"
        return f"<b>{panel.title}</b>&nbsp;&nbsp; none (clear) to {most} (full colour)"
    keys = [
        f'<span style="color:{curve.colour or series[i % len(series)]}">'
        f"{_SIGNS[curve.style]} {curve.name}</span>"
        for i, curve in enumerate(named[:_MAX_KEYS])
    ]
    more = f"and {len(named) - _MAX_KEYS} more" if len(named) > _MAX_KEYS else ""
    return "&nbsp;&nbsp; ".join([f"<b>{panel.title}</b>", *keys, *([more] if more else [])])


def axis_range(window: TimeWindow, scale: TimeScale) -> tuple[float, float]:
    """A window as a range of the time axis."""
    return (window.start_ns / scale.ns, window.end_ns / scale.ns)


def mark_lines(marks: Sequence[Mark], window: TimeWindow, scale: TimeScale) -> list[dict[str, Any]]:
    """Thin lines from top to bottom, as plotly's shapes; their words keep within the picture."""
    middle = (window.start_ns + window.end_ns) / 2
    return [
        {
            "type": "line",
            "xref": "x",
            "yref": "paper",
            "x0": mark.ts_ns / scale.ns,
            "x1": mark.ts_ns / scale.ns,
            "y0": 0,
            "y1": 1,
            "line": {"color": mark.colour, "width": 1},
            "label": {
                "text": mark.text,
                "textangle": 0,
                "textposition": "end",
                "xanchor": "left" if mark.ts_ns < middle else "right",
                "yanchor": "bottom",
                "font": {"color": mark.colour, "size": 11},
            },
        }
        for mark in marks
        if window.start_ns <= mark.ts_ns <= window.end_ns
    ]


def points(curve: Curve, scale: TimeScale) -> dict[str, Any]:
    """The data of one trace, as its update takes it."""
    data: dict[str, Any] = {"x": scale.of(curve.ts_ns), "y": curve.values}
    if curve.style == "segments":
        data["x"] = np.where(np.isnan(curve.values), np.nan, data["x"])
        data["text"] = curve.text
    elif curve.style == "heat":
        data |= {"y": curve.text, "z": _rows_of_colour(curve.values)}
    return data


def _rows_of_colour(values: Floats) -> Any:
    """Rows are sent as JSON, which knows no NaN: nothing stands where nothing is known."""
    missing = np.isnan(values)
    nothing = np.array(None, dtype=object)
    return np.where(missing, nothing, values) if missing.any() else values


def _trace(
    curve: Curve, number: int, scale: TimeScale, colour: str, panel: Panel
) -> go.Scatter | go.Heatmap:
    if curve.style == "heat":
        return _heat(curve, number, scale, colour, panel)
    area = curve.style == "area"
    segments = curve.style == "segments"
    return go.Scatter(
        **points(curve, scale),
        name=curve.name,
        yaxis="y" if number == 1 else f"y{number}",
        mode="lines",
        line={
            "color": colour,
            "width": curve.width if not area else 1,
            "shape": "hv" if area or curve.steps else "linear",
            "dash": "dot" if curve.style == "dash" else "solid",
        },
        fill="tozeroy" if area else None,
        fillcolor=_faded(colour) if area else None,
        connectgaps=False,
        hovertemplate="%{text}<extra></extra>" if segments else f"%{{y:.4~g}} {panel.unit}",
        hoverinfo="skip" if segments and not curve.text else None,
    )


def _heat(curve: Curve, number: int, scale: TimeScale, colour: str, panel: Panel) -> go.Heatmap:
    return go.Heatmap(
        **points(curve, scale),
        name=curve.name,
        yaxis="y" if number == 1 else f"y{number}",
        colorscale=heat_colours(colour),
        zmin=0,
        zmax=panel.bounds[1] if panel.bounds else None,
        ygap=1,
        showscale=False,
        hovertemplate=f"%{{y}}: %{{z:.3~g}} {panel.unit}<extra></extra>",
    )


def heat_colours(colour: str) -> list[tuple[float, str]]:
    """From the page's ground to a colour."""
    return [(0.0, _faded(colour, 0.0)), (1.0, _faded(colour, 1.0))]


def _faded(colour: str, share: float = 0.28) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{share})"


def _add_axis(
    figure: go.Figure,
    panel: Panel,
    number: int,
    domain: tuple[float, float],
    colours: Theme,
) -> None:
    faint, grid, series = colours.faint, colours.grid, colours.series
    key = "yaxis" if number == 1 else f"yaxis{number}"
    axis = {
        "domain": domain,
        "anchor": "x",
        "gridcolor": grid,
        "linecolor": grid,
        "zerolinecolor": grid,
        "fixedrange": True,
        "title": {"text": panel.unit, "font": {"size": 11, "color": faint}},
        "tickfont": {"size": 11, "color": faint},
        "automargin": False,
        "exponentformat": "none",
        "separatethousands": True,
        "rangemode": "tozero",
        "nticks": 4,
    }
    if panel.heat:
        axis |= {"autorange": "reversed", "title": None, "nticks": None, "showgrid": False}
        axis |= {"tickmode": "linear", "dtick": max(1, len(panel.curves[0].text) // 16)}
    elif panel.bounds:
        axis["range"] = panel.bounds
    if panel.ticks:
        axis |= {
            "tickvals": list(panel.ticks),
            "ticktext": list(panel.ticks.values()),
            "nticks": None,
        }
    figure.update_layout({key: axis})
    figure.add_annotation(
        name=f"title {number}",
        text=panel_title(panel, series),
        xref="paper",
        yref="paper",
        x=0,
        y=domain[1],
        yanchor="bottom",
        xanchor="left",
        showarrow=False,
        font={"size": 12.5},
    )
    if not panel.curves:
        figure.update_layout({key: {"visible": False}})
    if panel.is_empty:
        figure.add_annotation(
            name=f"empty {number}",
            text=panel.empty,
            xref="paper",
            yref="paper",
            x=0,
            y=domain[1],
            xanchor="left",
            yanchor="top",
            showarrow=False,
            font={"color": faint},
        )
