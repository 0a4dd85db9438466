"""Launches over time, and how much launched work waits for the device."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._levels import Levels, levels
from maiprof_nb.analysis._remember import remembered
from maiprof_nb.analysis.device_activity import Activity, activities
from maiprof_nb.analysis.launched_work import launched_work
from maiprof_nb.analysis.utilisation import bin_edges
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow

Ints = npt.NDArray[np.int64]
LAUNCHES, QUEUE, DELAY = "launches_per_s", "queue", "queue_delay_ns"


def launch_queue(
    session: Session, *, window: TimeWindow | None = None, bins: int = 400
) -> pd.DataFrame:
    """Launch rate, queue and queue delay of every device in equal bins of a window.

    Parameters
    ----------
    session : Session
        What to look at.
    window : TimeWindow, optional
        Time shown, in ns of the session; the session's own window by default.
    bins : int
        Number of bins.

    Returns
    -------
    DataFrame
        ``series`` (label of the device), ``what``, ``recording``, ``rank``, ``device``,
        ``ts_ns`` and ``dur_ns`` of the bin, ``value``. ``what`` is ``launches_per_s`` (calls that
        started work, by their start), ``queue`` (mean number of pieces of work whose launch call
        has returned and that have not started) and ``queue_delay_ns`` (median over the work that
        starts in the bin, of its start minus the end of its launch call; missing where none
        starts).

    Notes
    -----
    All work of a graph counts as launched when the call that starts the graph returns. A queue
    near 0 means that the device waits for the host; a long one that the host runs ahead.
    """
    edges = bin_edges(window or session.window, bins)
    width = np.maximum(np.diff(edges), 1)
    parts = []
    for one, place, queue in _queues(session):
        launched = _counts(place["launch_ns"].to_numpy()[place["first"].to_numpy()], edges)
        for what, value in (
            (LAUNCHES, launched / width * 1e9),
            (QUEUE, queue.integral_ns(edges) / width),
            (DELAY, _medians(place, edges)),
        ):
            parts.append(
                pd.DataFrame(
                    {"ts_ns": edges[:-1], "dur_ns": np.diff(edges), "value": value}
                ).assign(
                    series=one.label,
                    what=what,
                    recording=one.recording,
                    rank=pd.array([one.rank] * len(value), dtype="Int64"),
                    device=pd.array([one.device] * len(value), dtype="Int64"),
                )
            )
    columns = ["series", "what", "recording", "rank", "device", "ts_ns", "dur_ns", "value"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


@remembered
def _queues(session: Session) -> list[tuple[Activity, pd.DataFrame, Levels]]:
    """Each device with its launched work in order of its start, and its queue."""
    work = launched_work(session)
    work = work[work["launch"] >= 0].sort_values("ts_ns", kind="stable")
    found = []
    for one in activities(session):
        on = work["device"].isna() if one.device is None else work["device"] == one.device
        mine = work[(work["recording"] == one.recording) & on.fillna(False)]
        end = mine["launch_end_ns"].to_numpy(np.int64)
        waited = np.maximum(mine["ts_ns"].to_numpy(np.int64) - end, 0)
        kept = waited > 0
        queue = levels(end[kept], waited[kept], np.ones(int(kept.sum())))
        found.append((one, mine, queue))
    return found


def _counts(moments: Ints, edges: Ints) -> Ints:
    return np.diff(np.searchsorted(np.sort(moments), edges)).astype(np.int64)


def _medians(work: pd.DataFrame, edges: Ints) -> npt.NDArray[np.float64]:
    """Median delay of the work that starts in each bin; work is in order of its start."""
    value = np.full(len(edges) - 1, np.nan)
    first, last = np.searchsorted(work["ts_ns"].to_numpy(), edges[[0, -1]])
    part = work.iloc[first:last]
    index = np.searchsorted(edges, part["ts_ns"].to_numpy(), side="right") - 1
    median = part["queue_delay_ns"].groupby(index).median()
    value[median.index.to_numpy(np.int64)] = median.to_numpy(float)
    return value
