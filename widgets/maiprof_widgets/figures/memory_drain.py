"""How the memory live at one moment drained afterwards."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from maiprof_nb import units
from maiprof_widgets.figures.theme import layout, theme

ORDER = "order"  # axis of logs that have no times
_COLOURS: dict[str, int | None] = {  # one colour a category, whatever else is live
    "parameters": 0,
    "gradients": 1,
    "activations": 2,
    "optimizer state": 3,
    "temporaries": 6,
    "KV cache": 5,
    "unknown": None,
}
_BYTES = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"))


def memory_drain_figure(drain: pd.DataFrame, *, axis: str, dark: bool) -> go.Figure:
    """Stacked areas of what is still live, by category, over the time since the moment.

    There is a trace for every category, so that one figure can be updated to another.

    Parameters
    ----------
    drain : DataFrame
        As `maiprof_nb.analysis.memory_drain` gives it.
    axis : str
        That of the log: ``order`` counts events.
    dark : bool
        Dark or light ground.
    """
    colours = theme(dark=dark)
    figure = go.Figure()
    most = float(drain.groupby("after_ns")["size_bytes"].sum().max()) if len(drain) else 0.0
    scale, unit = next((one for one in _BYTES if most >= one[0]), (1, "B"))
    for name, place in _COLOURS.items():
        rows = drain[drain["category"] == name]
        colour = colours.step if place is None else colours.series[place]
        figure.add_scatter(
            x=_x(rows["after_ns"]), y=rows["size_bytes"] / scale, name=name, mode="lines",
            line={"shape": "hv", "width": 0.5, "color": colour}, fillcolor=_faded(colour),
            stackgroup="live", visible=bool(len(rows)),
            customdata=[(_after(ns, axis), units.size(size)) for ns, size
                        in zip(rows["after_ns"], rows["size_bytes"], strict=True)],
            hovertemplate="%{customdata[1]} after %{customdata[0]}<extra>%{fullData.name}</extra>",
        )  # fmt: skip
    figure.update_layout(layout(dark=dark))
    figure.update_yaxes(title={"text": f"still live ({unit})"}, rangemode="tozero")
    what = "events" if axis == ORDER else "time"
    ticks = _ticks(drain["after_ns"], axis) if len(drain) else {}
    figure.update_xaxes(
        title={"text": f"{what} since this moment (log scale)"}, type="log", **ticks
    )
    figure.update_layout(height=270, hovermode="closest", margin={"t": 44})
    return figure


def _x(after_ns: pd.Series) -> pd.Series:
    """A log scale has no 0: the moment itself stands a little before the first free."""
    later = after_ns[after_ns > 0]
    first = float(later.min()) if len(later) else 2.0
    return after_ns.astype("float64").where(after_ns > 0, first / 2)


def _ticks(after_ns: pd.Series, axis: str) -> dict[str, object]:
    low, high = float(_x(after_ns).min()), float(after_ns.max())
    powers = [10.0**power for power in range(13) if low <= 10.0**power <= max(high, low * 10)]
    return {"tickvals": powers, "ticktext": [_after(one, axis, round_=True) for one in powers]}


def _after(ns: float, axis: str, *, round_: bool = False) -> str:
    if axis == ORDER:
        return units.count(ns) if round_ else f"{units.count(ns)} events"
    if not round_:
        return units.duration(ns)
    scale, unit = next((one for one in _TIMES if ns >= one[0]), (1, "ns"))
    return f"{ns / scale:g} {unit}"


def _faded(colour: str) -> str:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.55)"
