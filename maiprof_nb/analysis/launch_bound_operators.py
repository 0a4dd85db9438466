"""Operators whose work is done before the host has launched the next."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis.device_activity import require_activity
from maiprof_nb.analysis.launch_rate import LONGEST_LAUNCH_GAP_NS
from maiprof_nb.analysis.launched_work import launched_work
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow

NO_OPERATOR = "(no operator)"


def launch_bound_operators(session: Session, *, window: TimeWindow | None = None) -> pd.DataFrame:
    """Operators by how far their launches lag behind the work they start.

    Parameters
    ----------
    session : Session
        What was recorded.
    window : TimeWindow, optional
        Launches made in it, or before it for work that begins in it, count; the window of the
        figures by default.

    Returns
    -------
    DataFrame
        One row an operator (the innermost round the launch): ``name``, ``launches``,
        ``launches_per_s``, ``work`` (pieces started), ``device_ns`` (their durations summed),
        ``compared`` (launches with another of the thread within 2 ms: all that follows is of
        these), ``median_work_ns`` (work of one launch), ``median_interval_ns`` (to the next
        launch), ``short_share`` (launches whose work is shorter than that interval),
        ``unfilled_ns`` (by how much the intervals exceed the work, summed) and
        ``launch_bound`` (whether the median launch starts less work than the interval lasts).
        Medians and share are missing where none is compared. Most ``unfilled_ns`` first.

    Raises
    ------
    NotAnswerableError
        If no device work was recorded.

    Notes
    -----
    An interval above 2 ms is a stall and not a launch: neither it nor the work before it
    enters the comparison, as a median over one and not the other would compare two sets of
    launches. Unfilled time is what these launches leave for others to fill, not idle time: a
    queue, another stream or another thread may fill it.
    """
    require_activity(session)
    shown = window or figure_window(session).window
    work = launched_work(session)
    calls = _by_launch(work[work["launch"] >= 0])
    begun = calls[["launch_ns", "ts_ns"]].max(axis=1)
    inside = (begun >= shown.start_ns) & (calls["launch_ns"] < shown.end_ns)
    calls = calls[inside]
    interval = calls["interval_ns"].where(calls["interval_ns"] <= LONGEST_LAUNCH_GAP_NS)
    compared = interval.notna()
    calls = calls.assign(
        name=_names(session, calls["operator"].to_numpy(np.int64)),
        interval_ns=interval,
        compared_ns=calls["dur_ns"].where(compared),
        short=(calls["dur_ns"] < interval).where(compared).astype(float),
        unfilled_ns=(interval - calls["dur_ns"]).clip(lower=0).fillna(0),
    )
    found = (
        calls.groupby("name", observed=True)
        .agg(
            launches=("dur_ns", "size"),
            work=("work", "sum"),
            device_ns=("dur_ns", "sum"),
            compared=("compared_ns", "count"),
            median_work_ns=("compared_ns", "median"),
            median_interval_ns=("interval_ns", "median"),
            short_share=("short", "mean"),
            unfilled_ns=("unfilled_ns", "sum"),
        )
        .reset_index()
    )
    found["name"] = found["name"].astype("str")
    found.insert(2, "launches_per_s", found["launches"] / max(shown.dur_ns, 1) * 1e9)
    bound = found["median_work_ns"] < found["median_interval_ns"]
    return found.assign(
        unfilled_ns=found["unfilled_ns"].round().astype("int64"), launch_bound=bound
    ).sort_values(["unfilled_ns", "name"], ascending=[False, True], ignore_index=True)


def _by_launch(work: pd.DataFrame) -> pd.DataFrame:
    """One row a launch call, with all the work it started."""
    sums = work.groupby("launch").agg(work=("dur_ns", "size"), dur_ns=("dur_ns", "sum"))
    columns = ["launch", "launch_ns", "ts_ns", "interval_ns", "operator"]
    return work.loc[work["first"], columns].set_index("launch").join(sums)


def _names(session: Session, rows: npt.NDArray[np.int64]) -> pd.Categorical:
    names = session.table("operators")["name"].cat
    codes = np.append(names.codes.to_numpy(np.int64), len(names.categories))
    return pd.Categorical.from_codes(codes[rows], [*names.categories, NO_OPERATOR])
