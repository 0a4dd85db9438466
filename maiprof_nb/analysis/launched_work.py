"""Each piece of device work with the call that launched it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._remember import remembered
from maiprof_nb.analysis._work_owners import work_owners
from maiprof_nb.session import Session

Ints = npt.NDArray[np.int64]
_KEY = ["recording", "correlation"]


@remembered
def launched_work(session: Session) -> pd.DataFrame:
    """Device work beside its launch, in the order of the table `kernels`.

    Returns
    -------
    DataFrame
        ``recording``, ``rank``, ``device``, ``ts_ns``, ``dur_ns`` of the work; ``launch`` (row
        of the table `launches`, or -1 where it was not recorded), ``launch_ns`` and
        ``launch_end_ns`` (0 where not), ``first`` (the first piece its launch started: a graph
        starts many at once), ``interval_ns`` (from that launch's start to that of the next one
        of its thread that started work; missing where none follows), ``queue_delay_ns`` (start
        of the work minus end of its launch call, below 0 where the work began before the call
        returned; missing without a launch) and ``operator`` (row of the innermost operator that
        launched it, or -1).
    """
    columns = ["recording", "rank", "device", "correlation", "ts_ns", "dur_ns"]
    work = session.table("kernels")[columns].reset_index(drop=True)
    calls = session.table("launches").reset_index(drop=True)
    launch = _launch_of(work, calls)
    known = launch >= 0
    row = np.maximum(launch, 0)
    start = np.where(known, _at(calls["ts_ns"], row), 0)
    end = np.where(known, _at(calls["ts_ns"] + calls["dur_ns"], row), 0)
    begun = work["ts_ns"].to_numpy(np.int64)
    first = known & _first_of_each(launch, begun)
    interval = np.full(len(work), np.nan)
    interval[first] = _intervals(calls, launch[first])
    return work.drop(columns="correlation").assign(
        launch=launch,
        launch_ns=start,
        launch_end_ns=end,
        first=first,
        interval_ns=interval,
        queue_delay_ns=np.where(known, begun - end, np.nan),
        operator=work_owners(session).owner,
    )


def _launch_of(work: pd.DataFrame, calls: pd.DataFrame) -> Ints:
    """Row of the launch call with the work's correlation, the first of several; or -1."""
    rows = calls[calls["correlation"].notna()].drop_duplicates(_KEY)[_KEY]
    rows = rows.assign(row=rows.index)
    found = work[_KEY].merge(rows, on=_KEY, how="left")["row"]
    found = found.where(work["correlation"].notna())
    return found.fillna(-1).to_numpy(np.int64)


def _at(values: pd.Series, rows: Ints) -> Ints:
    if values.empty:
        return np.zeros(len(rows), dtype=np.int64)
    return values.to_numpy(np.int64)[rows]


def _first_of_each(launch: Ints, begun: Ints) -> npt.NDArray[np.bool_]:
    order = np.lexsort((begun, launch))
    found = np.zeros(len(launch), dtype=bool)
    found[order] = np.diff(launch[order], prepend=-2) != 0
    return found


def _intervals(calls: pd.DataFrame, launch: Ints) -> npt.NDArray[np.float64]:
    """Time from each of these launches to the next of its thread."""
    rows = calls.iloc[launch]
    thread = rows.groupby(["recording", "pid", "tid"], observed=True, dropna=False).ngroup()
    moment = rows["ts_ns"].to_numpy(np.int64)
    order = np.lexsort((moment, thread.to_numpy()))
    until = np.diff(moment[order], append=0).astype(float)
    last = np.diff(thread.to_numpy()[order], append=-1) != 0
    found = np.empty(len(launch))
    found[order] = np.where(last, np.nan, until)
    return found
