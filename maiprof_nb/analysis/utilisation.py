"""CPU and GPU use over time, at the detail a picture of a given width can show."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._intervals import Union, overlap
from maiprof_nb.analysis.device_activity import activities
from maiprof_nb.analysis.host_activity import host_threads
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow

Ints = npt.NDArray[np.int64]

HOST_TABLES = ("operators", "annotations", "launches")


def bin_edges(window: TimeWindow, bins: int) -> Ints:
    """Edges of at most `bins` equal bins of at least 1 ns that cover a window."""
    count = max(1, min(bins, window.dur_ns))
    width, rest = divmod(window.dur_ns, count)
    edge = np.arange(count + 1, dtype=np.int64)
    return window.start_ns + edge * width + edge * rest // count


def utilisation(
    session: Session, *, window: TimeWindow | None = None, bins: int = 1000
) -> pd.DataFrame:
    """Use of every device and of the host in equal bins of a window.

    Parameters
    ----------
    session : Session
        What to look at.
    window : TimeWindow, optional
        Time shown, in ns of the session; the session's own window by default.
    bins : int
        Number of bins, e.g. the width of the picture in pixels.

    Returns
    -------
    DataFrame
        ``series`` (label), ``what`` (``gpu``, ``framework`` or ``recorded``), ``rank``,
        ``device``, ``ts_ns`` and ``dur_ns`` of the bin, ``value``. For ``gpu`` the share of
        the bin in which the device had any activity (0 to 1). For the host the mean number
        of threads inside an operator or launch call (``framework``), or inside any recorded
        event (``recorded``): recorded host activity, which is not CPU utilisation, as a
        thread that waits inside a recorded call counts and work nobody recorded does not.
    """
    edges = bin_edges(window or session.window, bins)
    parts = [
        _series(one.label, "gpu", one.rank, one.device, edges, _share([one.busy], edges))
        for one in activities(session)
    ]
    threads = host_threads(session)
    for recording in sorted({thread.recording for thread in threads}):
        mine = [thread for thread in threads if thread.recording == recording]
        rank = mine[0].rank
        host = "host" if rank is None else f"rank {rank} host"
        framework = _share([thread.framework for thread in mine], edges)
        recorded = _share([thread.recorded for thread in mine], edges)
        parts.append(_series(host, "framework", rank, None, edges, framework))
        parts.append(_series(host, "recorded", rank, None, edges, recorded))
    if not parts:
        return _series("", "gpu", None, None, edges[:1], np.empty(0))
    return pd.concat(parts, ignore_index=True)


def _share(busy: list[Union], edges: Ints) -> npt.NDArray[np.float64]:
    width = np.maximum(np.diff(edges), 1)
    covered = sum((overlap(one, edges[:-1], edges[1:]) for one in busy), np.zeros(len(width)))
    return covered / width


def _series(
    label: str,
    what: str,
    rank: int | None,
    device: int | None,
    edges: Ints,
    values: npt.NDArray[np.float64],
) -> pd.DataFrame:
    count = len(values)
    return pd.DataFrame(
        {
            "series": [label] * count,
            "what": [what] * count,
            "rank": pd.array([rank] * count, dtype="Int64"),
            "device": pd.array([device] * count, dtype="Int64"),
            "ts_ns": edges[:-1][:count],
            "dur_ns": np.diff(edges)[:count],
            "value": values,
        }
    )


def instances(
    session: Session,
    name: str,
    *,
    window: TimeWindow | None = None,
    limit: int = 2000,
    tables: Sequence[str] = HOST_TABLES,
    row: int | None = None,
    recording: int | None = None,
) -> pd.DataFrame:
    """Where the calls of one operator, range or launch lie; merged where too close to tell.

    Parameters
    ----------
    session : Session
        What to look at.
    name : str
        Name as the ranking shows it (``ProfilerStep*`` stands for every step).
    window : TimeWindow, optional
        Time shown; the session's own window by default.
    limit : int
        At most so many marks; calls nearer than a bin of ``window / limit`` are one mark.
    tables : sequence of str
        Where to look for the name; operators, ranges and launches by default.
    row, recording : int, optional
        Only the call of that event id (of that recording); all of the name by default.

    Returns
    -------
    DataFrame
        ``ts_ns``, ``end_ns`` of each mark and ``calls`` in it, in order of time.
    """
    shown = window or session.window
    wanted = []
    for table in tables:
        part = session.table(table)
        names = part["name"].cat.categories
        chosen = [
            n
            for n in names
            if n == name or (name == "ProfilerStep*" and n.startswith("ProfilerStep#"))
        ]
        part = part[part["name"].isin(chosen)]
        if row is not None:
            mine = True if recording is None else part["recording"] == recording
            part = part[(part["event"] == row) & mine]
        wanted.append(part[["ts_ns", "dur_ns"]])
    found = pd.concat(wanted, ignore_index=True)
    start = found["ts_ns"].to_numpy(np.int64)
    end = start + found["dur_ns"].to_numpy(np.int64)
    inside = (end >= shown.start_ns) & (start < shown.end_ns)
    order = np.argsort(start[inside], kind="stable")
    start, end = start[inside][order], end[inside][order]
    if len(start) == 0:
        return pd.DataFrame({"ts_ns": start, "end_ns": end, "calls": start})
    reach = np.maximum.accumulate(end)
    apart = (
        start[1:] - reach[:-1] > shown.dur_ns // limit
        if len(start) > limit
        else start[1:] > reach[:-1]
    )
    first = np.concatenate(([True], apart))
    group = np.cumsum(first) - 1
    last = np.concatenate((apart, [True]))
    return pd.DataFrame({"ts_ns": start[first], "end_ns": reach[last], "calls": np.bincount(group)})
