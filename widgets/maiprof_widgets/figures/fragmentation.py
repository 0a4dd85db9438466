"""How much reserved memory lies unused, and in how large pieces, over time."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from maiprof_nb.timebase import TimeWindow
from maiprof_widgets.figures.panels import Curve, Panel, TimeScale, panels_figure
from maiprof_widgets.figures.theme import theme

_UNITS = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))


def fragmentation_figure(
    found: pd.DataFrame, *, window: TimeWindow, scale: TimeScale, dark: bool
) -> go.Figure:
    """Both panels of `maiprof_nb.analysis.fragmentation` as a plotly figure.

    Parameters
    ----------
    found : DataFrame
        What the analysis gives.
    window : TimeWindow
        Time shown, in ns of the session (or in events).
    scale : TimeScale
        Unit of the time axis.
    dark : bool
        Dark or light ground.
    """
    most = int(found["reserved_bytes"].max())
    panels = fragmentation_panels(found, most_bytes=most, dark=dark)
    return panels_figure(panels, window=window, scale=scale, dark=dark)


def fragmentation_panels(
    found: pd.DataFrame, *, most_bytes: int, dark: bool, known_size: bool = False
) -> list[Panel]:
    """Bytes above, the share that is in pieces beneath.

    Parameters
    ----------
    found : DataFrame
        What `maiprof_nb.analysis.fragmentation.fragmentation` gives.
    most_bytes : int
        What the axis of bytes has to reach at every zoom.
    dark : bool
        Dark or light ground.
    known_size : bool
        What the device has left beyond the segments is counted in.
    """
    colours = theme(dark=dark)
    ts_ns = found["ts_ns"].to_numpy(np.int64)
    unit, size = next(((u, s) for u, s in _UNITS if most_bytes >= s), ("B", 1))
    top = most_bytes / size * 1.05 or 1.0

    def curve(name: str, column: str, colour: int, style: str, per: float = 1.0) -> Curve:
        values = found[column].to_numpy(np.float64) / per
        return Curve(name, ts_ns, values, style, colour=colours.series[colour], steps=True)

    released = "after empty_cache(), GPU's rest included" if known_size else (
        "after empty_cache()"
    )  # fmt: skip
    steps = (
        curve("allocated", "allocated_bytes", 0, "area", size),
        curve("reserved", "reserved_bytes", 7, "line", size),
        curve("largest request that fits", "fits_bytes", 1, "line", size),
        curve(released, "fits_after_release_bytes", 2, "dash", size),
    )
    share = (
        curve(
            "share of what is free outside the largest free piece", "fragmentation", 3, "line", 0.01
        ),
    )
    return [
        Panel("Reserved memory and what it serves", unit, steps, 150, (0, top)),
        Panel("Fragmentation", "%", share, 80, (0, 100), "nothing is free at any time shown"),
    ]
