"""Which operators and named ranges cost how much, on the host and on the device."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._call_origins import (
    LINE_OF,
    MODULE,
    USER_LINE,
    module_of,
    user_line_of,
)
from maiprof_nb.analysis._host_calls import lanes
from maiprof_nb.analysis._nesting import parents, sum_into_ancestors
from maiprof_nb.analysis._remember import remembered
from maiprof_nb.errors import UsageError
from maiprof_nb.session import Session
from maiprof_nb.tables.joining import join

Ints = npt.NDArray[np.int64]

GROUPINGS = {
    "name": ["name"],
    "shapes": ["name", "input_dims"],
    "stack": ["name", USER_LINE, LINE_OF],
    "module": ["name", MODULE, LINE_OF],
}
_PARTS = {"operators": "operator", "annotations": "range", "launches": "launch"}
_WITH_PYTHON = _PARTS | {"python_calls": "python"}
# What the profiler and autograd add around operators; torch's own ranking leaves it out.
_UTILITY = {
    "profiler::_record_function_enter",
    "profiler::_record_function_enter_new",
    "profiler::_record_function_exit",
    "aten::is_leaf",
    "aten::output_nr",
    "aten::_version",
}


def operator_ranking(
    session: Session, *, by: str = "name", with_python: bool = False
) -> pd.DataFrame:
    """Operators, named ranges and launch calls, ranked by their own host time.

    Parameters
    ----------
    session : Session
        Ranks and window that are selected count; a call counts whole if it overlaps the
        window.
    by : str
        ``name``; ``shapes`` for name and input shapes; ``stack`` for name and the innermost
        function of the user's own code around the call; ``module`` for name and the innermost
        ``nn.Module`` around it.
    with_python : bool
        Python functions are rows too, and take the time inside them from the range or
        operator that called them, as torch does when stacks were recorded.

    Returns
    -------
    DataFrame
        One row a group: ``name`` (and ``input_dims``; ``user_line`` or ``module``, with
        ``line_of``: call, or forward where it is that of the forward operator), ``kind``
        (operator, range, launch, python), ``calls``, ``self_ns`` (without callees),
        ``total_ns`` (with callees, summed over the calls), ``outermost_ns`` (the same counting
        recursion once), ``mean_ns``, ``min_ns``,
        ``max_ns`` of a call's total, ``device_self_ns`` (device work launched by it and by
        no callee), ``device_total_ns`` (with callees), ``self_share`` and ``device_share``
        (of all rows), sorted by ``self_ns``, largest first.

    Raises
    ------
    UsageError
        If `by` is not one of the groupings.

    Notes
    -----
    Same calls and times as ``torch.profiler.profile(...).key_averages()`` of the same run,
    by the same rules: a call whose only callee has the same name is one call with it;
    steps are one group, ``ProfilerStep*``; the profiler's own utility operators are left
    out. Unlike there, device work without a launching operator is not a row here, and
    shapes of lists of tensors (``torch.cat``) tell groups apart.
    Device time is summed over the work, so that work running side by side counts twice:
    it is not the time the device was busy.
    Lines and modules are those around the call on its own thread: by Python function events,
    else by the stack in the operator's arguments (traces before 2022; lines only). What runs
    in the backward pass has those of the forward operator that made its autograd function,
    found by sequence number. They are missing where none was recorded. A line from a function
    event is that of the ``def``, not of the call.
    """
    calls = calls_with_python(session) if with_python else operator_calls(session)
    return rank_calls(with_origin(session, calls, by=by), by=by)


def with_origin(session: Session, calls: pd.DataFrame, *, by: str) -> pd.DataFrame:
    """The calls with the column that a grouping needs beyond those of `operator_calls`."""
    if by == "stack":
        return _with_codes(calls, USER_LINE, user_line_of(session))
    if by == "module":
        return _with_codes(calls, MODULE, module_of(session))
    return calls


def recorded_groupings(session: Session) -> list[str]:
    """The groupings that tell the calls of this session apart by more than their names."""
    found = ["name", "shapes"]
    if not operator_calls(session).empty:
        found += ["stack"] if len(user_line_of(session)) else []
        found += ["module"] if len(module_of(session)) else []
    return found


@remembered
def operator_calls(session: Session) -> pd.DataFrame:
    """Every call with its place in the call tree and its own share of time.

    Returns
    -------
    DataFrame
        One row a call: ``recording``, ``rank``, ``event``, ``kind``, ``name``,
        ``input_dims``, ``ts_ns``, ``dur_ns``, ``pid``, ``tid``, ``parent`` (row number of
        the calling row, or -1), ``self_ns``, ``device_self_ns``, ``device_total_ns``,
        ``outermost`` (no enclosing call of the same name). Calls merged into their only,
        equally named callee keep the outer row.
    """
    return _in_call_tree(session, _host_calls(session, _PARTS))


@remembered
def calls_with_python(session: Session) -> pd.DataFrame:
    """The same as `operator_calls` with Python functions among the calls."""
    return _in_call_tree(session, _host_calls(session, _WITH_PYTHON))


def _with_codes(calls: pd.DataFrame, column: str, known: pd.DataFrame) -> pd.DataFrame:
    found = calls[["recording", "event"]].merge(known, on=["recording", "event"], how="left")
    return calls.assign(**{one: found[one].array for one in (column, LINE_OF)})


def _in_call_tree(session: Session, calls: pd.DataFrame) -> pd.DataFrame:
    """Nested apart from `every_call`: by the profiler's own rules, which leave calls out."""
    start = calls["ts_ns"].to_numpy(np.int64)
    duration = calls["dur_ns"].to_numpy(np.int64)
    parent = parents(lanes(calls), start, start + duration)
    name = calls["name"].cat.codes.to_numpy(np.int64)
    device_self = _device_time(session, calls, parent)
    kept, parent, inner = _merge_only_callees(parent, name)
    np.add.at(device_self, inner, np.where(kept, 0, device_self))
    calls = calls[kept].reset_index(drop=True)
    parent, duration, name = parent[kept], duration[kept], name[kept]
    within = np.zeros(len(calls), dtype=np.int64)
    has = parent >= 0
    np.add.at(within, parent[has], duration[has])
    device_self = device_self[kept]
    return calls.assign(
        parent=parent,
        self_ns=duration - within,
        device_self_ns=device_self,
        device_total_ns=sum_into_ancestors(parent, device_self),
        outermost=_outermost(parent, name),
    )


def _host_calls(session: Session, tables: dict[str, str]) -> pd.DataFrame:
    columns = ["recording", "rank", "event", "name", "ts_ns", "dur_ns", "pid", "tid", "external_id"]
    kinds = list(tables.values())
    no_dims = pd.Categorical.from_codes([-1], categories=pd.Index([], dtype="str"))
    found = []
    for table, kind in tables.items():
        part = session.table(table)
        part = part[~part["name"].isin(_UTILITY)]
        for column in set(columns) - set(part):
            part = part.assign(**{column: pd.array([pd.NA] * len(part), dtype="Int64")})
        dims = part["input_dims"] if "input_dims" in part else no_dims.repeat(len(part))
        part = part[columns].assign(
            kind=pd.Categorical.from_codes(np.full(len(part), kinds.index(kind)), categories=kinds),
            input_dims=dims,
            name=_one_name_for_steps(part["name"]),
        )
        found.append(part)
    calls = join(found)
    return calls.sort_values(["recording", "event"], ignore_index=True, kind="stable")


def _one_name_for_steps(names: pd.Series) -> pd.Categorical:
    """`ProfilerStep#7` -> `ProfilerStep*`, so that steps are one group."""
    renamed = names.cat.categories.str.replace(r"^ProfilerStep#.*", "ProfilerStep*", regex=True)
    codes, categories = pd.factorize(renamed)
    return pd.Categorical.from_codes(
        np.append(codes, -1)[names.cat.codes.to_numpy()], categories=categories
    )


def _merge_only_callees(parent: Ints, name: Ints) -> tuple[npt.NDArray[np.bool_], Ints, Ints]:
    """Merge every only callee that has its caller's name into the caller.

    Returns
    -------
    kept : ndarray of bool
        False for the merged ones.
    new_parent : ndarray of int64
        Parents as row numbers among the kept ones.
    into : ndarray of int64
        For every call the one it is part of now (itself if kept).
    """
    children = np.bincount(parent[parent >= 0], minlength=len(parent))
    has = parent >= 0
    merged = np.zeros(len(parent), dtype=bool)
    merged[has] = (name[parent[has]] == name[has]) & (children[parent[has]] == 1)
    into = np.arange(len(parent))
    while (loose := merged[into]).any():
        into[loose] = parent[into[loose]]
    new_number = np.cumsum(~merged) - 1
    new_parent = np.where(has, new_number[into[np.where(has, parent, 0)]], -1)
    return ~merged, new_parent.astype(np.int64), into.astype(np.int64)


def _outermost(parent: Ints, name: Ints) -> npt.NDArray[np.bool_]:
    """True where no caller, however far up, has the same name."""
    outermost = np.ones(len(parent), dtype=bool)
    ancestor = parent.copy()
    while (has := ancestor >= 0).any():
        outermost[has] &= name[ancestor[has]] != name[has]
        ancestor[has] = parent[ancestor[has]]
    return outermost


def _device_time(session: Session, calls: pd.DataFrame, parent: Ints) -> Ints:
    """Duration of the device work each call launched itself.

    By the operator's external id; where the work carries none, by the operator round the
    launch call with the same correlation id.
    """
    work = session.table("kernels")[["recording", "dur_ns", "external_id", "correlation"]]
    time = np.zeros(len(calls), dtype=np.int64)
    if work.empty:
        return time
    is_operator = (calls["kind"] == "operator").to_numpy()
    owners = calls[is_operator & calls["external_id"].notna()].drop_duplicates(
        ["recording", "external_id"]
    )
    keys = owners[["recording", "external_id"]].assign(row=owners.index)
    work = work.merge(keys, on=["recording", "external_id"], how="left")
    launches = session.table("launches")[["recording", "event", "correlation"]]
    launches = launches[launches["correlation"].notna()].drop_duplicates(
        ["recording", "correlation"]
    )
    rows = calls[~is_operator][["recording", "event"]].assign(launch=lambda f: f.index)
    launches = launches.merge(rows, on=["recording", "event"])
    work = work.merge(
        launches[["recording", "correlation", "launch"]],
        on=["recording", "correlation"],
        how="left",
    )
    by_launch = work["launch"].notna() & work["row"].isna()
    caller = parent[work.loc[by_launch, "launch"].to_numpy(np.int64)]
    work.loc[by_launch, "row"] = np.where(caller >= 0, caller, work.loc[by_launch, "launch"])
    owned = work[work["row"].notna()]
    np.add.at(time, owned["row"].to_numpy(np.int64), owned["dur_ns"].to_numpy(np.int64))
    return time


def rank_calls(calls: pd.DataFrame, *, by: str = "name") -> pd.DataFrame:
    """Rank calls that were already found: all of `operator_calls`, or some of its rows.

    Parameters and result are those of `operator_ranking`.
    """
    if by not in GROUPINGS:
        raise UsageError(f"operators cannot be grouped by {by}", remedy=f"Use {list(GROUPINGS)}")
    keys = GROUPINGS[by]
    calls = calls.assign(outermost_ns=calls["dur_ns"].where(calls["outermost"], 0))
    ranking = (
        calls.groupby(keys, observed=True, dropna=False)
        .agg(
            kind=("kind", "first"),
            calls=("dur_ns", "size"),
            self_ns=("self_ns", "sum"),
            total_ns=("dur_ns", "sum"),
            outermost_ns=("outermost_ns", "sum"),
            mean_ns=("dur_ns", "mean"),
            min_ns=("dur_ns", "min"),
            max_ns=("dur_ns", "max"),
            device_self_ns=("device_self_ns", "sum"),
            device_total_ns=("device_total_ns", "sum"),
        )
        .reset_index()
    )
    shares = {
        "self_share": ranking["self_ns"] / max(int(ranking["self_ns"].sum()), 1),
        "device_share": ranking["device_self_ns"] / max(int(ranking["device_self_ns"].sum()), 1),
    }
    return ranking.assign(**shares).sort_values("self_ns", ascending=False, ignore_index=True)
