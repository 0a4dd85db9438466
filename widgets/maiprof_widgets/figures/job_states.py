"""States of a job as stacked bars of host time by phase."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from maiprof_widgets.figures.theme import layout, theme


def job_states_figure(found: pd.DataFrame, *, dark: bool) -> go.Figure:
    """One bar a state: host time by phase for the work of one step of the first.

    Parameters
    ----------
    found : DataFrame
        Rows of `maiprof_nb.analysis.job_states`.
    dark : bool
        Dark or light ground.
    """
    colours = theme(dark=dark)
    figure = go.Figure()
    phases = [str(name).removesuffix("_ns") for name in found if str(name).endswith("_ns")]
    states = found["state"].astype("str").tolist()[::-1]
    for number, phase in enumerate(phases):
        values = found[f"{phase}_ns"].to_numpy(dtype="float64")[::-1] / 1e6
        if not values.any():
            continue
        last = number == len(phases) - 1
        figure.add_bar(
            x=values,
            y=states,
            orientation="h",
            name=phase,
            marker={"color": colours.step if last else colours.series[number]},
            hovertemplate=f"%{{y}}: {phase} %{{x:.4~g}} ms<extra></extra>",
        )
    figure.update_layout(layout(dark=dark))
    figure.update_layout(
        barmode="stack",
        height=110 + 34 * len(states),
        hovermode="closest",
        margin={"l": 110},
        legend_traceorder="normal",
    )
    figure.update_xaxes(
        title={"text": "host time (ms) for the work of one step of the first state"}, ticks=""
    )
    figure.update_yaxes(showgrid=False)
    return figure
