"""Time and device work of each phase as bars."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from maiprof_widgets.figures.panels import time_scale
from maiprof_widgets.figures.theme import layout, theme


def phases_figure(found: pd.DataFrame, *, dark: bool) -> go.Figure:
    """Host time, device time and number of launches, phase by phase.

    Parameters
    ----------
    found : DataFrame
        Rows of `maiprof_nb.analysis.phases`.
    dark : bool
        Dark or light ground.
    """
    colours = theme(dark=dark)
    figure = make_subplots(rows=1, cols=3, shared_yaxes=True, horizontal_spacing=0.05)
    names = found["phase"].astype("str").tolist()[::-1]
    scale = time_scale(int(found[["host_ns", "device_ns"]].to_numpy().max(initial=0)))
    bars = (
        (f"Host time ({scale.unit})", found["host_ns"] / scale.ns, colours.series[0]),
        (
            f"Device time launched ({scale.unit})",
            found["device_ns"] / scale.ns,
            colours.series[1],
        ),
        ("Launches of device work", found["kernels"], colours.series[2]),
    )
    for column, (title, values, colour) in enumerate(bars, start=1):
        shown = values.to_numpy(dtype="float64")[::-1]
        figure.add_bar(
            x=shown,
            y=names,
            orientation="h",
            marker={"color": colour},
            name=title,
            hovertemplate=f"%{{y}}: %{{x:.4~g}}<extra>{title}</extra>",
            row=1,
            col=column,
        )
        figure.update_xaxes(title={"text": title}, rangemode="tozero", row=1, col=column)
    figure.update_layout(layout(dark=dark))
    small = {"size": 11, "color": colours.faint}
    figure.update_xaxes(
        gridcolor=colours.grid,
        zerolinecolor=colours.grid,
        tickfont=small,
        title_font={"size": 11.5},
        nticks=5,
        ticks="",
        exponentformat="none",
        separatethousands=True,
    )
    figure.update_layout(showlegend=False, height=260, hovermode="closest", margin={"l": 110})
    return figure
