"""How fast the host launches work, and whether the device could work faster."""

from __future__ import annotations

import numpy as np
import pandas as pd

from maiprof_nb.analysis._remember import remembered
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.session import Session

LONGEST_LAUNCH_GAP_NS = 2_000_000  # a launch takes microseconds: what lasts longer is a stall


@remembered
def launch_rate(session: Session) -> pd.DataFrame:
    """Launches of device work in the window of the figures, one row a device.

    Returns
    -------
    DataFrame
        ``recording``, ``rank``, ``device``, ``work`` (pieces of device work), ``launches``
        (calls that started them; a graph starts many at once), ``launches_per_s``,
        ``median_work_ns`` and ``median_interval_ns`` (between the starts of two launches in a
        row on one thread; missing with fewer than two).

    Notes
    -----
    Where the median piece of work is shorter than the median interval, the device finishes
    before the host has launched the next, and cannot build up a queue.
    """
    window = figure_window(session).window
    work = session.table("kernels")
    inside = (work["ts_ns"] < window.end_ns) & (work["ts_ns"] + work["dur_ns"] > window.start_ns)
    work = work[inside]
    launches = session.table("launches")
    launches = launches[launches["correlation"].notna()].drop_duplicates(
        ["recording", "correlation"]
    )[["recording", "correlation", "pid", "tid", "ts_ns"]]
    rows = []
    for (recording, device), mine in work.groupby(["recording", "device"], dropna=False):
        starts = launches[launches["recording"] == recording].merge(
            mine[["correlation"]].drop_duplicates(), on="correlation"
        )
        rows.append(
            {
                "recording": recording,
                "rank": mine["rank"].iloc[0],
                "device": device,
                "work": len(mine),
                "launches": len(starts),
                "launches_per_s": len(starts) / max(window.dur_ns, 1) * 1e9,
                "median_work_ns": float(mine["dur_ns"].median()),
                "median_interval_ns": _median_interval(starts),
            }
        )
    columns = [
        "recording", "rank", "device", "work", "launches", "launches_per_s", "median_work_ns",
        "median_interval_ns",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def _median_interval(starts: pd.DataFrame) -> float:
    ordered = starts.sort_values("ts_ns")
    intervals = ordered.groupby(["pid", "tid"], observed=True)["ts_ns"].diff().to_numpy(float)
    known = intervals[~np.isnan(intervals)]
    return float(np.median(known)) if len(known) else float("nan")
