"""Which host functions run while the device has nothing to do."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pandas as pd

from maiprof_nb.analysis._host_calls import NO_EVENT, host_calls
from maiprof_nb.analysis._intervals import Union, intersect, overlap, union_of
from maiprof_nb.analysis.device_activity import activities, gaps
from maiprof_nb.session import Session


def functions_in_gaps(session: Session) -> pd.DataFrame:
    """Host functions by the time they take while every device is idle.

    Returns
    -------
    DataFrame
        One row a function and kind: ``name``, ``kind`` (python, operator, range, launch),
        ``threads`` (how many ran it), ``calls`` (that touch a gap), ``self_in_gaps_ns``
        (its own time inside gaps, summed over threads), ``total_in_gaps_ns`` (with what it
        calls), ``loop_in_gaps_ns`` (the same on threads that launch device work, so without
        workers that only prepare), ``idle_share`` (own time over the idle time; above 1 where
        several threads are in the function at once). Most own time first.

    Raises
    ------
    NotAnswerableError
        If no device work was recorded.

    Notes
    -----
    What runs during a gap is not necessarily its cause. Gaps of several devices are
    merged: only time in which all are idle counts. Of traces that keep stacks with their
    operators instead of Python calls, a function has the time of those operators only, a
    lower bound, and ``calls`` counts the operators.
    """
    idle = all_idle(session)
    calls = host_calls(session)
    if calls.empty:
        nothing = dict.fromkeys(("self_in_gaps_ns", "total_in_gaps_ns", "loop_in_gaps_ns"), 0)
        return _grouped(calls.assign(**nothing), 1)
    start = calls["ts_ns"].to_numpy(np.int64)
    end = start + calls["dur_ns"].to_numpy(np.int64)
    lane, parent = (calls[one].to_numpy(np.int64) for one in ("lane", "parent"))
    inside = overlap(idle, start, end)
    callees = np.zeros(len(calls), dtype=np.int64)
    has = parent >= 0
    np.add.at(callees, parent[has], inside[has])
    own = np.maximum(inside - callees, 0)  # callees that overlap one another count twice
    launching = np.isin(lane, lane[(calls["kind"] == "launch").to_numpy()])
    calls = calls.assign(
        self_in_gaps_ns=own,
        total_in_gaps_ns=inside,
        loop_in_gaps_ns=np.where(launching, inside, 0),
    )
    return _grouped(calls[inside > 0], max(idle.length_ns, 1))


def frames_from_stacks(session: Session) -> bool:
    """Whether frames were put together from the stacks of operators, so that times are bounds."""
    calls = host_calls(session)
    return bool(((calls["kind"] == "python") & (calls["event"] == NO_EVENT)).any())


def all_idle(session: Session) -> Union:
    """Time in which every device is idle; none if one of them never is.

    Raises
    ------
    NotAnswerableError
        If no device work was recorded.
    """
    found = gaps(session)
    by_device = [union_of(rows) for _, rows in found.groupby(["recording", "device"], dropna=False)]
    if len(by_device) < len(activities(session)):
        return union_of(found.head(0))
    return reduce(intersect, by_device)


def _grouped(calls: pd.DataFrame, idle_ns: int) -> pd.DataFrame:
    by = calls.groupby(["name", "kind"], observed=True)
    found = by.agg(
        threads=("lane", "nunique"),
        calls=("name", "size"),
        self_in_gaps_ns=("self_in_gaps_ns", "sum"),
        total_in_gaps_ns=("total_in_gaps_ns", "sum"),
        loop_in_gaps_ns=("loop_in_gaps_ns", "sum"),
    ).reset_index()
    found = found.astype({"name": "str", "kind": "str"})
    found["idle_share"] = found["self_in_gaps_ns"] / idle_ns
    return found.sort_values("self_in_gaps_ns", ascending=False, ignore_index=True)
