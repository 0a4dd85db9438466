"""Everything the host was recorded to run, as one table of nested calls."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.session import Session

Ints = npt.NDArray[np.int64]

KINDS = {
    "python_calls": "python",
    "operators": "operator",
    "annotations": "range",
    "launches": "launch",
}
_COLUMNS = ["recording", "name", "ts_ns", "dur_ns", "pid", "tid"]


def host_calls(session: Session) -> pd.DataFrame:
    """Calls of Python functions, operators, ranges and runtime calls; not the marks of steps.

    Returns
    -------
    DataFrame
        ``recording``, ``name``, ``ts_ns``, ``dur_ns``, ``pid``, ``tid``, ``kind`` (python,
        operator, range, launch).

    Notes
    -----
    Recordings that could not be placed on the session's axis, or only count stacks, say nothing
    about its times and are left out. So are sampled stacks where a trace holds Python calls of
    its own: they would be the same time seen twice.
    """
    parts = [
        session.table(table)[_COLUMNS]
        .assign(kind=kind)
        .astype(dict.fromkeys(("name", "pid", "tid"), "str"))
        for table, kind in KINDS.items()
    ]
    calls = pd.concat(parts, ignore_index=True)
    kept = ~calls["name"].str.startswith("ProfilerStep#") & calls["recording"].isin(
        used_recordings(session)
    )
    return calls[kept].reset_index(drop=True)


def lanes(calls: pd.DataFrame) -> Ints:
    """A number for each thread of each recording."""
    by = calls.groupby(["recording", "pid", "tid"], observed=True, dropna=False)
    return by.ngroup().to_numpy(np.int64)


def sampled_recordings(session: Session) -> list[int]:
    """Recordings whose calls were put together from samples of the stack."""
    return [n for n, one in enumerate(session.recordings) if one.kind == "stacks"]


def used_recordings(session: Session) -> list[int]:
    """Recordings whose calls say something about the session's times, none of them twice."""
    placed = {n for n, place in enumerate(session.placements) if place.on_axis}
    sampled = set(sampled_recordings(session))
    timeless = {n for n in sampled if session.recordings[n].meta.get("without_times")}
    if len(session.recordings) > 1:
        placed -= timeless
    traced = set(session.table("python_calls")["recording"].unique().tolist()) - sampled
    return [n for n in sorted(placed) if n not in sampled or not traced & placed]
