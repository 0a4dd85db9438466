"""How fast the host launches work, and whether the device could work faster."""

from __future__ import annotations

import pandas as pd

from maiprof_nb.analysis.launched_work import launched_work
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow

LONGEST_LAUNCH_GAP_NS = 2_000_000  # a launch takes microseconds: what lasts longer is a stall


def launch_rate(session: Session, *, window: TimeWindow | None = None) -> pd.DataFrame:
    """Launches of device work in a window, one row a device.

    Parameters
    ----------
    session : Session
        What was recorded.
    window : TimeWindow, optional
        Work that meets it counts; the window of the figures by default.

    Returns
    -------
    DataFrame
        ``recording``, ``rank``, ``device``, ``work`` (pieces of device work), ``unlaunched``
        (of them: without a recorded launch), ``launches`` (calls that started the others; a
        graph starts many at once), ``launches_per_s``,
        ``median_work_ns``, ``median_interval_ns`` (from the start of a launch to that of the
        next on its thread; missing with fewer than two), ``median_queue_delay_ns`` and
        ``p95_queue_delay_ns`` (start of the work minus end of its launch call).

    Notes
    -----
    Where the median piece of work is shorter than the median interval, the device finishes
    before the host has launched the next, and cannot build up a queue.
    """
    shown = window or figure_window(session).window
    work = launched_work(session)
    inside = (work["ts_ns"] < shown.end_ns) & (work["ts_ns"] + work["dur_ns"] > shown.start_ns)
    work = work[inside]
    work = work.assign(unlaunched=work["launch"] < 0)
    by = work.groupby(["recording", "device"], dropna=False)
    found = by.agg(
        rank=("rank", "first"),
        work=("dur_ns", "size"),
        unlaunched=("unlaunched", "sum"),
        launches=("first", "sum"),
        median_work_ns=("dur_ns", "median"),
        median_interval_ns=("interval_ns", "median"),
        median_queue_delay_ns=("queue_delay_ns", "median"),
        p95_queue_delay_ns=("queue_delay_ns", lambda delay: delay.quantile(0.95)),
    ).reset_index()
    per_s = found["launches"] / max(shown.dur_ns, 1) * 1e9
    return found.assign(launches_per_s=per_s)[
        ["recording", "rank", "device", "work", "unlaunched", "launches", "launches_per_s",
         "median_work_ns", "median_interval_ns", "median_queue_delay_ns", "p95_queue_delay_ns"]
    ]  # fmt: skip
