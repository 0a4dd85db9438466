"""Copies between host and device: which way, from what kind of memory, how fast, how often."""

from __future__ import annotations

import numpy as np
import pandas as pd

from maiprof_nb.analysis._remember import remembered
from maiprof_nb.analysis._work_owners import work_owners
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.session import Session


@remembered
def copies(session: Session) -> pd.DataFrame:
    """Every copy in the window of the figures.

    Returns
    -------
    DataFrame
        ``recording``, ``rank``, ``device``, ``event``, ``ts_ns``, ``dur_ns``, ``direction``
        (``HtoD``, ``DtoH``, ``DtoD``, ``PtoP``, ``HtoH``; missing where the name does not say),
        ``memory`` (``pageable`` or ``pinned`` host memory, as the name says it),
        ``size_bytes``, ``operator`` (row of `operators` that launched it, or -1),
        ``input_dims`` (of that operator), ``step``: the step whose mark holds its launching
        operator, or else its start (missing outside).
    """
    window = figure_window(session).window
    work = session.table("kernels")
    owner = work_owners(session).owner
    inside = (work["ts_ns"] < window.end_ns) & (work["ts_ns"] + work["dur_ns"] > window.start_ns)
    chosen = ((work["kind"] == "memcpy") & inside).to_numpy(bool)
    found = work.loc[
        chosen, ["recording", "rank", "device", "event", "name", "ts_ns", "dur_ns", "size_bytes"]
    ]
    names = found["name"].astype("str")
    operators = session.table("operators")
    at = owner[chosen]
    owned = at >= 0
    dims = np.full(len(at), None, dtype=object)
    begun = found["ts_ns"].to_numpy(np.int64).copy()
    if len(operators):
        dims[owned] = operators["input_dims"].astype("object").to_numpy()[at[owned]]
        begun[owned] = operators["ts_ns"].to_numpy(np.int64)[at[owned]]
    return (
        found.drop(columns="name")
        .assign(
            direction=names.str.extract(r"\b(HtoD|DtoH|DtoD|PtoP|HtoH)\b")[0],
            memory=names.str.extract(r"(Pageable|Pinned)")[0].str.lower(),
            operator=at,
            input_dims=dims,
            step=_step_at(session, found["recording"].to_numpy(np.int64), begun),
        )
        .reset_index(drop=True)
    )


def host_copies(session: Session) -> pd.DataFrame:
    """Copies between host and device by direction and kind of host memory.

    Returns
    -------
    DataFrame
        One row a direction and kind of memory (``unsaid`` where the name does not tell it):
        ``direction``, ``memory``, ``calls``, ``total_ns``, ``size_bytes`` (missing where no
        copy says it), ``gbs`` (10^9 bytes a second, over the copies that say their size).
    """
    found = copies(session)
    found = found[found["direction"].isin(["HtoD", "DtoH"])]
    said = found["size_bytes"].notna()
    found = found.assign(
        memory=found["memory"].fillna("unsaid"), timed_ns=found["dur_ns"].where(said, 0)
    )
    groups = found.groupby(["direction", "memory"])
    table = groups.agg(calls=("dur_ns", "size"), total_ns=("dur_ns", "sum"))
    table["size_bytes"] = groups["size_bytes"].sum(min_count=1)
    timed = groups["timed_ns"].sum()
    table["gbs"] = (table["size_bytes"] / timed.where(timed > 0)).astype("Float64")
    return table.reset_index()


def repeated_copies(session: Session) -> pd.DataFrame:
    """Copies of one size and shape made over and over within single steps.

    Returns
    -------
    DataFrame
        One row a device, direction, size and shape, most time first: ``recording``, ``rank``,
        ``device``, ``direction``, ``size_bytes``, ``input_dims``, ``calls``, ``steps``,
        ``calls_a_step`` (mean over the steps that have any; over the whole window where there
        are no steps), ``total_ns``, ``event`` of the longest.

    Notes
    -----
    A trace does not say which bytes were copied. Equal size and shape within a step make the
    same buffer likely, not sure.
    """
    found = copies(session)
    found = found[found["direction"].isin(["HtoD", "DtoH"]) & found["size_bytes"].notna()]
    found = found.sort_values("dur_ns", ascending=False, kind="stable")
    found = found.assign(step=found["step"].fillna(-1).astype("int64"))
    keys = ["recording", "rank", "device", "direction", "size_bytes", "input_dims"]
    table = (
        found.groupby(keys, dropna=False)
        .agg(
            calls=("dur_ns", "size"),
            steps=("step", "nunique"),
            total_ns=("dur_ns", "sum"),
            event=("event", "first"),
        )
        .reset_index()
    )
    table = table.assign(calls_a_step=table["calls"] / table["steps"].where(table["steps"] > 0))
    return table.sort_values("total_ns", ascending=False, ignore_index=True)


def _step_at(
    session: Session, recording: np.ndarray, ts_ns: np.ndarray
) -> pd.api.extensions.ExtensionArray:
    """The step whose mark holds each moment, or missing."""
    marks = session.table("steps").sort_values(["recording", "ts_ns"])
    step = np.zeros(len(ts_ns), dtype=np.int64)
    known = np.zeros(len(ts_ns), dtype=bool)
    for number, rows in marks.groupby("recording"):
        start = rows["ts_ns"].to_numpy(np.int64)
        end = start + rows["dur_ns"].to_numpy(np.int64)
        here = np.flatnonzero(recording == number)
        place = np.searchsorted(start, ts_ns[here], side="right") - 1
        within = (place >= 0) & (ts_ns[here] < end[np.maximum(place, 0)])
        step[here[within]] = rows["step"].to_numpy(np.int64)[place[within]]
        known[here[within]] = True
    return pd.arrays.IntegerArray(step, ~known)
