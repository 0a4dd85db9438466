"""What samplers measured: series for a picture, and figures for a window."""

from __future__ import annotations

import numpy as np
import pandas as pd

from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow


def metric_series(
    session: Session, *, window: TimeWindow | None = None, bins: int = 1000
) -> pd.DataFrame:
    """Every counter over time, at most two points (lowest and highest) a bin.

    Returns
    -------
    DataFrame
        ``recording``, ``device``, ``counter``, ``unit``, ``ts_ns``, ``value``, in order of
        time within each series. Samples just outside the window are kept, so that a line
        enters and leaves the picture.
    """
    samples = _on_axis(session)
    shown = window or session.window
    width = max(shown.dur_ns // max(bins, 1), 1)
    keys = ["recording", "device", "counter", "unit"]
    samples = samples.sort_values("ts_ns", kind="stable", ignore_index=True)
    place = (samples["ts_ns"] - shown.start_ns) // width
    samples = samples.assign(bin=place.clip(-1, bins + 1))
    by = samples.groupby([*keys, "bin"], observed=True, dropna=False)["value"]
    kept = np.unique(np.concatenate((by.idxmin().to_numpy(), by.idxmax().to_numpy())))
    return samples.loc[kept, [*keys, "ts_ns", "value"]].reset_index(drop=True)


def metric_summary(session: Session, *, window: TimeWindow | None = None) -> pd.DataFrame:
    """Each counter's figures over a window.

    Returns
    -------
    DataFrame
        One row a device and counter: ``recording``, ``device``, ``counter``, ``unit``,
        ``samples``, ``median``, ``mean``, ``p95``, ``maximum``; samples count alike however
        far apart they are.
    """
    samples = _on_axis(session)
    shown = window or session.window
    samples = samples[samples["ts_ns"].between(shown.start_ns, shown.end_ns)]
    by = samples.groupby(["recording", "device", "counter", "unit"], observed=True, dropna=False)
    found = by["value"].agg(
        samples="size", median="median", mean="mean", p95=lambda v: v.quantile(0.95), maximum="max"
    )
    return found.reset_index()


def _on_axis(session: Session) -> pd.DataFrame:
    """Samples of the sources that are on the common axis, or of all where none is."""
    samples = session.table("counters")
    on_axis = session.clocks.loc[session.clocks["on_axis"], "recording"]
    placed = samples[samples["recording"].isin(on_axis)]
    return placed if len(placed) else samples
