"""Which kernels cost how much, and how they were launched."""

from __future__ import annotations

import numpy as np
import pandas as pd

from maiprof_nb.analysis.tensor_cores import UNDECIDED, VERDICTS, verdicts
from maiprof_nb.errors import UsageError
from maiprof_nb.session import Session

GROUPINGS = {"name": ["name"], "launch": ["name", "grid", "block"]}


def kernel_ranking(session: Session, *, by: str = "name") -> pd.DataFrame:
    """Device work ranked by its time.

    Parameters
    ----------
    session : Session
        Ranks and window that are selected count; a piece counts whole if it overlaps the
        window.
    by : str
        ``name``, or ``launch`` for name, grid and block.

    Returns
    -------
    DataFrame
        One row a group: ``name``, ``kind``, ``grid``, ``block`` (those of the most calls,
        where the group has several), ``launches`` (number of different grids and blocks),
        ``calls``, ``total_ns``, ``mean_ns``, ``min_ns``, ``max_ns``, ``share`` (of all device
        work's time), ``size_bytes`` (copies and memsets, summed), ``registers`` and
        ``shared_memory_bytes`` (largest), ``blocks_per_sm`` and ``est_occupancy_pct`` (means
        weighted by time), ``tensor_core`` (``yes``, ``no``, ``name does not say``; missing for
        copies and memsets). Sorted by ``total_ns``, largest first; what was not recorded is
        missing.

    Raises
    ------
    UsageError
        If `by` is not one of the groupings.
    """
    if by not in GROUPINGS:
        raise UsageError(f"kernels cannot be grouped by {by}", remedy=f"Use {list(GROUPINGS)}")
    keys = GROUPINGS[by]
    work = session.table("kernels")
    work = work.assign(launch=_launch(work))
    groups = work.groupby(keys, observed=True, dropna=False)
    found = groups.agg(
        kind=("kind", "first"),
        launches=("launch", "nunique"),
        calls=("dur_ns", "size"),
        total_ns=("dur_ns", "sum"),
        mean_ns=("dur_ns", "mean"),
        min_ns=("dur_ns", "min"),
        max_ns=("dur_ns", "max"),
        registers=("registers", "max"),
        shared_memory_bytes=("shared_memory_bytes", "max"),
    )
    found["size_bytes"] = groups["size_bytes"].sum(min_count=1)
    for column in ("blocks_per_sm", "est_occupancy_pct"):
        found[column] = _weighted(work, keys, column)
    found = found.reset_index()
    if by == "name":
        found = found.merge(_most_launched(work), on="name", how="left")
    found["share"] = found["total_ns"] / max(int(found["total_ns"].sum()), 1)
    found["tensor_core"] = _flags(found)
    return found.sort_values("total_ns", ascending=False, ignore_index=True)[
        ["name", "kind", "grid", "block", "launches", "calls", "total_ns", "mean_ns", "min_ns",
         "max_ns", "share", "size_bytes", "registers", "shared_memory_bytes", "blocks_per_sm",
         "est_occupancy_pct", "tensor_core"]
    ]  # fmt: skip


def _launch(work: pd.DataFrame) -> pd.Series:
    """Grid and block as one number; missing where neither was recorded."""
    grid, block = work["grid"].cat, work["block"].cat
    codes = grid.codes.astype("int64") * (len(block.categories) + 1) + block.codes
    return codes.where((grid.codes >= 0) | (block.codes >= 0))


def _most_launched(work: pd.DataFrame) -> pd.DataFrame:
    """The grid and block most calls of each name have."""
    counts = work.groupby(["name", "grid", "block"], observed=True, dropna=False).size()
    first = counts.rename("n").reset_index().sort_values("n", ascending=False, kind="stable")
    return first.drop_duplicates("name")[["name", "grid", "block"]]


def _weighted(work: pd.DataFrame, keys: list[str], column: str) -> pd.Series:
    """Mean weighted by duration over the calls that have the value."""
    value = work[column].astype("float64")
    weight = work["dur_ns"].where(value.notna(), 0).astype("float64")
    parts = work[keys].assign(sum=(value * weight).fillna(0.0), weight=weight)
    sums = parts.groupby(keys, observed=True, dropna=False)[["sum", "weight"]].sum()
    return (sums["sum"] / sums["weight"].where(sums["weight"] > 0)).astype("Float64")


def _flags(found: pd.DataFrame) -> pd.Categorical:
    if not len(found):
        return pd.Categorical([], categories=list(VERDICTS))
    flags = verdicts(found["name"].astype("category"))
    named = found["name"].notna().to_numpy()
    codes = np.where(named, flags.codes, VERDICTS.index(UNDECIDED))
    moves = found["kind"].isin(["memcpy", "memset"]).to_numpy()
    return pd.Categorical.from_codes(np.where(moves, -1, codes), categories=list(VERDICTS))
