"""Following the tree down: what a call calls, and what calls it, with sums that are exact."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis.operator_ranking import calls_with_python, operator_calls
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow

Bools = npt.NDArray[np.bool_]
Path = str | Sequence[str]


def callees(
    session: Session, name: Path, *, window: TimeWindow | None = None, with_python: bool = False
) -> pd.DataFrame:
    """What the calls of an operator or range call directly, by name.

    Parameters
    ----------
    session : Session
        Ranks and window that are selected count.
    name : str or sequence of str
        Name as in `operator_ranking`; or a path of names, outermost first, each called
        directly by the one before: then only the last one's calls on that path count.
    window : TimeWindow, optional
        Only calls that overlap it; each counts whole, and so do its callees.
    with_python : bool
        Python functions are in the tree too.

    Returns
    -------
    DataFrame
        One row a callee: ``name``, ``kind``, ``calls``, ``total_ns`` (with its own callees),
        ``self_ns`` (without), ``share`` of the total of `name`; sorted by ``total_ns``, largest
        first. Empty where nothing is called.

    Notes
    -----
    The callees' totals and the own ``self_ns`` of `name` add up to the total of `name`, exactly.
    With recursion a name is its own callee, and its total counts the inner calls again.
    """
    calls = _tree(session, with_python)
    return callees_among(calls, on_path(calls, name, window=window))


def callers(
    session: Session, name: Path, *, window: TimeWindow | None = None, with_python: bool = False
) -> pd.DataFrame:
    """What calls an operator or range directly, by name.

    Parameters
    ----------
    session, name, window, with_python
        As for `callees`.

    Returns
    -------
    DataFrame
        One row a caller: ``name`` (missing = called by nothing that was recorded), ``kind``,
        and of the calls of `name` that it made ``calls``, ``total_ns``, ``self_ns`` and
        ``share`` of the total of `name`; sorted by ``total_ns``. The rows add up to all calls
        of `name`.
    """
    calls = _tree(session, with_python)
    return callers_among(calls, on_path(calls, name, window=window))


def heaviest_path(
    session: Session, name: Path, *, window: TimeWindow | None = None, with_python: bool = False
) -> list[str]:
    """From `name` always down to the dearest callee, until the own time outweighs every callee.

    Parameters
    ----------
    session, name, window, with_python
        As for `callees`.

    Returns
    -------
    list of str
        Names, outermost first, beginning with the path given. At the last one one has arrived:
        its ``self_ns`` is at least the total of each of its callees.
    """
    calls = _tree(session, with_python)
    return heaviest_path_among(calls, name, on_path(calls, name, window=window))


def on_path(calls: pd.DataFrame, name: Path, *, window: TimeWindow | None = None) -> Bools:
    """Which calls have that name, or lie at the end of that path, and overlap the window."""
    names = [name] if isinstance(name, str) else list(name)
    parent = calls["parent"].to_numpy(np.int64)
    has = parent >= 0
    found = np.zeros(len(calls), dtype=bool)
    for depth, one in enumerate(names):
        named = (calls["name"] == one).to_numpy(bool)
        found = named if depth == 0 else named & has & found[parent]
    if window is not None:
        start = calls["ts_ns"].to_numpy(np.int64)
        end = start + calls["dur_ns"].to_numpy(np.int64)
        found = found & (start < window.end_ns) & (end > window.start_ns)
    return found


def callees_among(calls: pd.DataFrame, chosen: Bools) -> pd.DataFrame:
    """`callees` of the calls that are chosen among all."""
    parent = calls["parent"].to_numpy(np.int64)
    inside = (parent >= 0) & chosen[parent] if len(calls) else chosen
    return _summed(calls.loc[inside], int(calls.loc[chosen, "dur_ns"].sum()))


def callers_among(calls: pd.DataFrame, chosen: Bools) -> pd.DataFrame:
    """`callers` of the calls that are chosen among all."""
    mine = calls.loc[chosen]
    parent = mine["parent"].to_numpy(np.int64)
    outer = {}
    for column in ("name", "kind"):
        codes = calls[column].cat.codes.to_numpy(np.int64)
        found = np.where(parent >= 0, codes[parent], -1) if len(mine) else parent
        outer[column] = pd.Categorical.from_codes(found, categories=calls[column].cat.categories)
    return _summed(mine.assign(**outer), int(mine["dur_ns"].sum()))


def heaviest_path_among(calls: pd.DataFrame, name: Path, chosen: Bools) -> list[str]:
    """`heaviest_path` from the calls that are chosen among all."""
    path = [name] if isinstance(name, str) else list(name)
    while True:
        below = callees_among(calls, chosen)
        own = int(calls.loc[chosen, "self_ns"].sum())
        if below.empty or own >= int(below["total_ns"].iloc[0]):
            return path
        path.append(str(below["name"].iloc[0]))
        parent = calls["parent"].to_numpy(np.int64)
        named = (calls["name"] == path[-1]).to_numpy(bool)
        chosen = named & (parent >= 0) & chosen[parent]


def _tree(session: Session, with_python: bool) -> pd.DataFrame:
    return calls_with_python(session) if with_python else operator_calls(session)


def _summed(calls: pd.DataFrame, whole_ns: int) -> pd.DataFrame:
    found = (
        calls.groupby("name", observed=True, dropna=False)
        .agg(
            kind=("kind", "first"),
            calls=("dur_ns", "size"),
            total_ns=("dur_ns", "sum"),
            self_ns=("self_ns", "sum"),
        )
        .reset_index()
    )
    return found.assign(share=found["total_ns"] / max(whole_ns, 1)).sort_values(
        "total_ns", ascending=False, ignore_index=True, kind="stable"
    )
