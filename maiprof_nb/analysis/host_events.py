"""Recorded host events of certain names, whatever table they are in."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from maiprof_nb.analysis._intervals import overlap, union_of
from maiprof_nb.analysis._nesting import parents
from maiprof_nb.analysis.device_activity import activities, gaps
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.session import Session

_TABLES = ("python_calls", "annotations", "operators", "launches", "other_events")
_COLUMNS = ["recording", "rank", "event", "name", "ts_ns", "dur_ns", "pid", "tid"]
_NOT_OF_THE_JOB = ("Trace", "overhead")


def host_events_named(session: Session, rule: re.Pattern[str]) -> pd.DataFrame:
    """Events in the window of the figures whose name matches, outermost ones only.

    Returns
    -------
    DataFrame
        In order of time: ``recording``, ``rank``, ``table``, ``event``, ``name``, ``ts_ns``,
        ``dur_ns``, ``pid``, ``tid``. Events inside another match on the same thread are
        left out, so durations of one thread may be summed.
    """
    window = figure_window(session).window
    parts = []
    for table in _TABLES:
        rows = session.table(table)
        if table == "other_events":
            timed = rows["ts_ns"].notna() & rows["dur_ns"].notna()
            rows = rows[timed & ~rows["category"].isin(_NOT_OF_THE_JOB)]
        names = [name for name in rows["name"].cat.categories if rule.search(str(name))]
        mine = rows[rows["name"].isin(names)][_COLUMNS].astype(
            {"name": "str", "pid": "str", "tid": "str", "ts_ns": "int64", "dur_ns": "int64"}
        )
        parts.append(mine.assign(table=table))
    found = pd.concat(parts, ignore_index=True)
    inside = (found["ts_ns"] < window.end_ns) & (found["ts_ns"] + found["dur_ns"] > window.start_ns)
    found = found[inside].reset_index(drop=True)
    start = found["ts_ns"].to_numpy(np.int64)
    lane = found.groupby(["recording", "pid", "tid"], dropna=False).ngroup().to_numpy(np.int64)
    parent = parents(lane, start, start + found["dur_ns"].to_numpy(np.int64))
    return found[parent < 0].sort_values("ts_ns", ignore_index=True)


def time_in_gaps(session: Session, events: pd.DataFrame) -> pd.DataFrame:
    """Time of these events during which each device was idle.

    Returns
    -------
    DataFrame
        One row a device with gaps, most first: ``recording``, ``rank``, ``device``,
        ``in_gaps_ns`` (moments in which several of the events run count once).

    Raises
    ------
    NotAnswerableError
        If no device work was recorded.
    """
    found = gaps(session)
    rows = []
    for (recording, device), mine in found.groupby(["recording", "device"], dropna=False):
        busy = union_of(events[events["recording"] == recording])
        start = mine["ts_ns"].to_numpy(np.int64)
        inside = overlap(busy, start, start + mine["dur_ns"].to_numpy(np.int64))
        rows.append(
            {
                "recording": recording,
                "rank": mine["rank"].iloc[0],
                "device": device,
                "in_gaps_ns": int(inside.sum()),
            }
        )
    made = pd.DataFrame(rows, columns=["recording", "rank", "device", "in_gaps_ns"])
    return made.sort_values("in_gaps_ns", ascending=False, ignore_index=True)


def stalled_ns(session: Session, events: pd.DataFrame) -> int:
    """Time of these events that a device was idle, of the device with most of it.

    Without recorded device work it is the time with any of the events on the host, of the
    recording with most of it.
    """
    if activities(session):
        found = time_in_gaps(session, events)
        return int(found["in_gaps_ns"].max()) if len(found) else 0
    lengths = [union_of(mine).length_ns for _, mine in events.groupby("recording")]
    return max(lengths, default=0)
