"""What samplers measured: series for a picture, and figures for a window."""

from __future__ import annotations

import numpy as np
import pandas as pd

from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow

_SERIES = ["recording", "device", "counter", "unit"]


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
    samples = samples_on_axis(session)
    shown = window or session.window
    width = max(-(-shown.dur_ns // max(bins, 1)), 1)
    samples = samples.sort_values("ts_ns", kind="stable", ignore_index=True)
    before = samples["ts_ns"] < shown.start_ns
    after = samples["ts_ns"] > shown.end_ns
    inside = samples[~before & ~after]
    place = (inside["ts_ns"] - shown.start_ns) // width
    inside = inside.assign(bin=place.clip(upper=max(bins, 1) - 1))
    by = inside.groupby([*_SERIES, "bin"], observed=True, dropna=False)["value"]
    kept = [by.idxmin(), by.idxmax()]
    for outside, place in ((before, -1), (after, 0)):  # the nearest sample on either side
        series = samples[outside].groupby(_SERIES, observed=True, dropna=False)
        kept.append(series.nth(place).index.to_series())
    rows = np.unique(np.concatenate([found.to_numpy(np.int64) for found in kept]))
    return samples.loc[rows, [*_SERIES, "ts_ns", "value"]].reset_index(drop=True)


def metric_summary(session: Session, *, window: TimeWindow | None = None) -> pd.DataFrame:
    """Each counter's figures over a window.

    Returns
    -------
    DataFrame
        One row a device and counter: ``recording``, ``device``, ``counter``, ``unit``,
        ``samples``, ``median``, ``mean``, ``p95``, ``maximum``. The mean is over time: a
        sample stands for the time since the one before it, as samplers report averages over
        their last period. In the other figures samples count alike.
    """
    samples = samples_on_axis(session)
    shown = window or session.window
    samples = samples.assign(stands_for_ns=_time_in(samples, shown))
    samples = samples[samples["ts_ns"].between(shown.start_ns, shown.end_ns)]
    weighted = samples["value"] * samples["stands_for_ns"]
    by = samples.assign(weighted=weighted).groupby(_SERIES, observed=True, dropna=False)
    found = by["value"].agg(
        samples="size", median="median", mean="mean", p95=lambda v: v.quantile(0.95), maximum="max"
    )
    time = by["stands_for_ns"].sum()
    found["mean"] = (by["weighted"].sum() / time.where(time > 0)).fillna(found["mean"])
    return found.reset_index()


def _time_in(samples: pd.DataFrame, shown: TimeWindow) -> pd.Series:
    """How long each sample stands for inside the window; a series' first for no time."""
    ordered = samples.sort_values("ts_ns", kind="stable")
    since = ordered.groupby(_SERIES, observed=True, dropna=False)["ts_ns"].shift()
    since = since.fillna(ordered["ts_ns"]).clip(lower=shown.start_ns)
    return (ordered["ts_ns"].clip(upper=shown.end_ns) - since).clip(lower=0)


def samples_on_axis(session: Session) -> pd.DataFrame:
    """Samples of the sources that are on the common axis, or of all where none is."""
    samples = session.table("counters")
    on_axis = session.clocks.loc[session.clocks["on_axis"], "recording"]
    placed = samples[samples["recording"].isin(on_axis)]
    placed = placed if len(placed) else samples
    return placed[placed["value"].notna()]
