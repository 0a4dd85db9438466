"""Steps as stacked bars of their phases: host time above, device time below."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from maiprof_widgets.figures.panels import time_scale
from maiprof_widgets.figures.theme import layout, theme

MAX_BARS = 500
_LEAST_BARS = 8  # room for so many, that a single one is no wall


def binned(found: pd.DataFrame, max_bars: int = MAX_BARS) -> pd.DataFrame:
    """Steps of one recording, as many side by side as can be seen; means where several share one.

    Parameters
    ----------
    found : DataFrame
        Rows of `maiprof_nb.analysis.phase_steps`, of one recording.
    max_bars : int
        At most so many bars.

    Returns
    -------
    DataFrame
        One row a bar and phase: ``bar``, ``phase``, ``first_step``, ``last_step``, ``ts_ns``,
        ``end_ns``, ``host_ns``, ``device_ns``, ``kernels``, ``exposed_communication_ns`` (means a
        step), ``peak_bytes`` (the most).
    """
    starts = np.sort(found["ts_ns"].unique())
    each = max(-(-len(starts) // max_bars), 1)
    bar = np.searchsorted(starts, found["ts_ns"].to_numpy()) // each
    rows = found.assign(bar=bar, end_ns=found["ts_ns"] + found["dur_ns"])
    by = rows.groupby(["bar", "phase"], observed=False)
    return by.agg(
        first_step=("step", "min"),
        last_step=("step", "max"),
        ts_ns=("ts_ns", "min"),
        end_ns=("end_ns", "max"),
        host_ns=("host_ns", "mean"),
        device_ns=("device_ns", "mean"),
        kernels=("kernels", "mean"),
        exposed_communication_ns=("exposed_communication_ns", "mean"),
        peak_bytes=("peak_bytes", "max"),
    ).reset_index()


def phase_steps_figure(bars: pd.DataFrame, outliers: pd.DataFrame, *, dark: bool) -> go.Figure:
    """Stacked bars, a bar a step (or a run of steps), slow steps marked.

    Parameters
    ----------
    bars : DataFrame
        As `binned` returns.
    outliers : DataFrame
        ``step`` and ``excess_ns`` of steps that took much longer than the median.
    dark : bool
        Dark or light ground.
    """
    colours = theme(dark=dark)
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.07)
    longest = max(float(bars.groupby("bar")["host_ns"].sum().max()), 1.0)
    scale = time_scale(int(longest))
    unit, ns = scale.unit, scale.ns
    names = [str(name) for name in bars["phase"].cat.categories]
    for number, name in enumerate(names):
        rows = bars[bars["phase"] == name]
        some = bool(rows[["host_ns", "device_ns"]].to_numpy().any())
        last = number == len(names) - 1
        colour = colours.step if last else colours.series[number]
        for row, column in ((1, "host_ns"), (2, "device_ns")):
            figure.add_bar(
                x=rows["bar"], y=rows[column] / ns, name=name, legendgroup=name,
                showlegend=some and row == 1, marker={"color": colour, "line": {"width": 0}},
                customdata=_details(rows), hovertemplate=_HOVER.format(name=name, unit=unit),
                row=row, col=1,
            )  # fmt: skip
    _mark(figure, bars, outliers, scale.ns, colours.mark)
    figure.update_layout(layout(dark=dark))
    several = bool((bars["first_step"] != bars["last_step"]).any())
    small = {"size": 11, "color": colours.faint}
    titles = (f"host time ({unit})", f"device time ({unit})")
    for row, title in enumerate(titles, start=1):
        figure.update_yaxes(
            title={"text": title, "font": {"size": 11.5}},
            gridcolor=colours.grid,
            zerolinecolor=colours.grid,
            tickfont=small,
            rangemode="tozero",
            row=row,
            col=1,
        )
    ticks = bars.drop_duplicates("bar")
    ticks = ticks.iloc[:: max(len(ticks) // 12, 1)]
    figure.update_xaxes(
        tickvals=ticks["bar"],
        ticktext=ticks["first_step"].astype("str"),
        range=(-0.6, max(bars["bar"].max() + 1, _LEAST_BARS) - 0.4),
        showgrid=False,
        zeroline=False,
        tickfont=small,
        title_font={"size": 11.5},
    )
    figure.update_xaxes(
        title={"text": "step (means of runs of steps)" if several else "step"}, row=2
    )
    figure.update_layout(barmode="stack", bargap=0.08, height=420, hovermode="closest")
    return figure


_HOVER = "%{{customdata[0]}}: {name} %{{y:.4~g}} {unit}<br>%{{customdata[1]}}<extra></extra>"


def _details(rows: pd.DataFrame) -> list[list[str]]:
    made = []
    for row in rows.itertuples():
        same = row.first_step == row.last_step
        steps = f"step {row.first_step}" if same else f"steps {row.first_step} to {row.last_step}"
        facts = [f"{row.kernels:.0f} launched"]
        if row.exposed_communication_ns:
            facts.append(f"exposed communication {row.exposed_communication_ns / 1e6:.3g} ms")
        if not pd.isna(row.peak_bytes):
            facts.append(f"at most {row.peak_bytes / 2**30:.3g} GiB allocated")
        made.append([steps, ", ".join(facts)])
    return made


def _mark(
    figure: go.Figure, bars: pd.DataFrame, outliers: pd.DataFrame, ns: float, colour: str
) -> None:
    """A sign above every bar that holds a slow step."""
    each = bars.drop_duplicates("bar").set_index("bar")
    height = bars.groupby("bar")["host_ns"].sum() / ns
    x, y, texts = [], [], []
    for step, excess in outliers[["step", "excess_ns"]].itertuples(index=False):
        holding = each[(each["first_step"] <= step) & (each["last_step"] >= step)].index
        if len(holding):
            x.append(int(holding[0]))
            y.append(float(height[holding[0]]))
            texts.append(f"slow step {step}: {excess / 1e6:.4g} ms above the median")
    figure.add_scatter(
        x=x, y=y, mode="markers", name="slow step", text=texts, hoverinfo="text",
        marker={"symbol": "triangle-down", "size": 9, "color": colour}, cliponaxis=False,
        showlegend=bool(x), row=1, col=1,
    )  # fmt: skip
