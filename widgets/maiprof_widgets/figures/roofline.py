"""Achieved rates of matrix operators beneath the roofs of their device."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pandas as pd
import plotly.graph_objects as go

from maiprof_nb import units
from maiprof_nb.analysis.device_peaks import Peaks
from maiprof_widgets import escaping
from maiprof_widgets.figures.theme import RIGHT_PX, Theme, layout, theme

KINDS = {"matrix product": "circle", "convolution": "square", "attention": "diamond"}
_SMALLEST_PX, _LARGEST_PX = 8, 34
_HEIGHT_PX, _LABELS_PX = 460, 172
_TERA, _GIGA = 1e12, 1e9
_Line = tuple[list[float | None], list[float | None]]


def roofline_figure(
    found: pd.DataFrame, peaks: Peaks | None, chosen: str | None, *, dark: bool
) -> go.Figure:
    """Points by arithmetic intensity and achieved rate; the same traces for any rows.

    Parameters
    ----------
    found : DataFrame
        Rows of `maiprof_nb.analysis.roofline.roofline` with a known ``intensity``.
    peaks : Peaks or None
        Whose roofs are drawn; None where they are not known.
    chosen : str or None
        Operator whose points are marked.
    dark : bool
        Dark or light ground.
    """
    colours = theme(dark=dark)
    figure = go.Figure(layout=layout(dark=dark))
    x, y = _ranges(found, peaks)
    used = set(found["arithmetic"].dropna())
    _add_roofs(figure, peaks, used, (x, y), colours)
    size = _sizes(found["device_ns"].to_numpy(float))
    for (kind, symbol), colour in zip(KINDS.items(), colours.series, strict=False):
        mine = (found["kind"] == kind).to_numpy()
        rows = found[mine]
        figure.add_scatter(
            x=rows["intensity"], y=rows["tflops"] * _TERA, mode="markers", name=kind,
            showlegend=len(rows) > 0, customdata=np.flatnonzero(mine), text=_words(rows),
            hovertemplate="%{text}<extra></extra>",
            marker={
                "symbol": symbol, "size": size[mine], "color": colour, "opacity": 0.75,
                "line": {"width": 1, "color": colours.ground},
            },
        )  # fmt: skip
    marked = (found["name"].astype("str") == chosen).to_numpy()
    figure.add_scatter(
        x=found["intensity"][marked], y=found["tflops"][marked] * _TERA, mode="markers",
        name="chosen", showlegend=False, hoverinfo="skip",
        marker={"symbol": "circle-open", "size": size[marked] + 8, "color": colours.mark,
                "line": {"width": 2}},
    )  # fmt: skip
    axis = {
        "type": "log", "gridcolor": colours.grid, "dtick": 1, "zeroline": False, "minor_ticks": "",
    }  # fmt: skip
    figure.update_layout(
        height=_HEIGHT_PX,
        margin={"r": _LABELS_PX if peaks else RIGHT_PX},
        hovermode="closest",
        legend={"itemsizing": "constant", "x": 0, "xanchor": "left"},
        xaxis={
            **axis,
            "range": x,
            "title": {"text": "arithmetic intensity (FLOP a byte, each tensor moved once)"},
        },
        yaxis={**axis, "range": y, "title": {"text": "achieved (FLOP/s)"}, "tickformat": "~s"},
    )
    return figure


def _ranges(
    found: pd.DataFrame, peaks: Peaks | None
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Both axes in powers of ten, so that points, ridges and roofs lie inside."""
    x, y = list(found["intensity"]), list(found["tflops"] * _TERA)
    if peaks:
        y += [rate * _TERA for rate in peaks.tflops.values()]
        x += [rate * _TERA / (peaks.bandwidth_gbs * _GIGA) for rate in peaks.tflops.values()]
    x, y = [v for v in x if v > 0] or [1.0], [v for v in y if v > 0] or [_GIGA]
    edge = 0.45
    return (
        (math.log10(min(x)) - edge, math.log10(max(x)) + edge),
        (math.log10(min(y)) - edge, math.log10(max(y)) + edge),
    )


def _add_roofs(
    figure: go.Figure,
    peaks: Peaks | None,
    used: set[str],
    ranges: tuple[tuple[float, float], tuple[float, float]],
    colours: Theme,
) -> None:
    """The memory's slope and a level a rate; solid where a point is held against it."""
    (left, right), _ = ranges
    solid: _Line = ([], [])
    dotted: _Line = ([], [])
    if peaks:
        slope = peaks.bandwidth_gbs * _GIGA
        kinds: dict[float, list[str]] = {}
        for arithmetic, rate in peaks.tflops.items():
            kinds.setdefault(rate, []).append(arithmetic)
        highest = max(kinds)
        x = [10**left, highest * _TERA / slope]
        _extend(solid, x, [x[0] * slope, x[1] * slope])
        for rate, names in kinds.items():
            hit = bool(used & set(names))
            at = [rate * _TERA / slope, 10**right]
            _extend(solid if hit else dotted, at, [rate * _TERA] * 2)
            _label(figure, rate, " = ".join(names), colours.text if hit else colours.faint)
        _label_slope(figure, left, peaks, colours)
    for line, dash, colour in (
        (solid, "solid", colours.text),
        (dotted, "dot", colours.faint),
    ):
        figure.add_scatter(
            x=line[0], y=line[1], mode="lines", line={"color": colour, "width": 1.2, "dash": dash},
            hoverinfo="skip", showlegend=False, name=f"{dash} roofs",
        )  # fmt: skip


def _extend(line: _Line, x: list[float], y: list[float]) -> None:
    """One more piece; a gap (None: JSON knows no NaN) keeps it from the piece before."""
    line[0].extend([*x, None])
    line[1].extend([*y, None])


def _label(figure: go.Figure, tflops: float, names: str, colour: str) -> None:
    """Beside the plot, where no point lies."""
    figure.add_annotation(
        xref="paper", x=1, y=math.log10(tflops * _TERA), xanchor="left", showarrow=False,
        text=f"{names} {tflops:g} TFLOP/s", font={"size": 10.5, "color": colour}, xshift=4,
    )  # fmt: skip


def _label_slope(figure: go.Figure, left: float, peaks: Peaks, colours: Theme) -> None:
    """Beneath its left end."""
    figure.add_annotation(
        x=left, y=left + math.log10(peaks.bandwidth_gbs * _GIGA), xanchor="left", yanchor="top",
        showarrow=False, text=f"memory {peaks.bandwidth_gbs:g} GB/s", xshift=14, yshift=-2,
        font={"size": 10.5, "color": colours.text},
    )  # fmt: skip


def _sizes(device_ns: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Diameters whose areas are as the device times."""
    most = device_ns.max(initial=1.0)
    size: npt.NDArray[np.float64] = np.sqrt(device_ns / most) * _LARGEST_PX
    return np.maximum(size, _SMALLEST_PX)


def _words(rows: pd.DataFrame) -> list[str]:
    made = []
    for row in rows.itertuples():
        roof = (
            f"<br>{units.percent(row.roof_share)} of its roof, bound by {row.bound}"
            if row.bound is not None and not math.isnan(row.roof_share)
            else ""
        )
        made.append(
            f"<b>{escaping.shortened(row.name, 60)}</b><br>"
            f"m {units.count(row.m)}, n {units.count(row.n)}, k {units.count(row.k)}"
            f"{f', {row.arithmetic}' if isinstance(row.arithmetic, str) else ''}<br>"
            f"{units.count(row.calls)} calls, {units.duration(row.device_ns)} "
            f"({units.percent(row.share)} of the device's work)<br>"
            f"{row.tflops:.3g} TFLOP/s at {row.intensity:.3g} FLOP a byte{roof}"
        )
    return made
