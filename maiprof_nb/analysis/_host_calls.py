"""Everything the host was recorded to run, as one table of nested calls."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._forward_links import forward_of
from maiprof_nb.analysis._nesting import kept_parents, parents
from maiprof_nb.analysis._recorded_stacks import frames_of_stacks
from maiprof_nb.analysis._remember import remembered
from maiprof_nb.session import Session
from maiprof_nb.tables.joining import join

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# Of calls that begin and end together the first is the outer one.
KINDS = {
    "annotations": "range",
    "python_calls": "python",
    "operators": "operator",
    "launches": "launch",
}
NO_EVENT = -1
_STEP = "ProfilerStep#"
_COLUMNS = ["recording", "event", "name", "ts_ns", "dur_ns", "pid", "tid"]


@remembered
def every_call(session: Session) -> pd.DataFrame:
    """Calls of Python functions, operators, ranges, marks of steps and runtime calls.

    Returns
    -------
    DataFrame
        ``recording``, ``event``, ``name``, ``ts_ns``, ``dur_ns``, ``pid``, ``tid``, ``kind``
        (range, python, operator, launch), ``sequence`` (of operators), ``lane`` (a number for
        each thread of each recording), ``parent`` (row of the call it lies in, or -1) and
        ``forward`` (of a function of the backward pass the row of the operator that made it,
        or -1).

    Notes
    -----
    Where a trace holds no Python calls but stacks in its operators' arguments, the frames are
    rows too, of kind python, without event (-1) and as long as the operator: what Python did
    between two operators is not known, so that their times are lower bounds.
    """
    calls = join(_recorded(session))
    lane = lanes(calls)
    start = calls["ts_ns"].to_numpy(np.int64)
    parent = parents(lane, start, start + calls["dur_ns"].to_numpy(np.int64))
    return calls.assign(lane=lane, parent=parent, forward=_forward(session, calls))


@remembered
def calls_on_axis(session: Session) -> pd.DataFrame:
    """`every_call` of the recordings that say something about the session's times.

    Notes
    -----
    Recordings that could not be placed on the session's axis, or only count stacks, are left
    out. So are sampled stacks where a trace holds Python calls of its own: they would be the
    same time seen twice.
    """
    calls = every_call(session)
    return _only(calls, calls["recording"].isin(used_recordings(session)).to_numpy())


@remembered
def host_calls(session: Session) -> pd.DataFrame:
    """`calls_on_axis` without the marks of steps, which say nothing about what ran."""
    calls = calls_on_axis(session)
    return _only(calls, ~_are_steps(calls["name"]))


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


def _recorded(session: Session) -> list[pd.DataFrame]:
    """The tables' rows, with the frames of old traces before the operators they led to."""
    parts = []
    kinds = list(KINDS.values())
    for table, kind in KINDS.items():
        part = session.table(table)
        if table == "operators":
            with_python = session.table("python_calls")["recording"].unique()
            frames = frames_of_stacks(part[~part["recording"].isin(with_python)])
            parts.append(_of_kind(frames.assign(event=NO_EVENT), "python", kinds))
        parts.append(_of_kind(part, kind, kinds))
    return parts


def _of_kind(part: pd.DataFrame, kind: str, kinds: list[str]) -> pd.DataFrame:
    codes = np.full(len(part), kinds.index(kind))
    nothing = np.zeros(len(part), dtype=np.int64)
    unnumbered = pd.arrays.IntegerArray(nothing, np.ones(len(part), dtype=bool))
    return part[_COLUMNS].assign(
        kind=pd.Categorical.from_codes(codes, categories=kinds),
        sequence=part.get("sequence", unnumbered),
    )


def _forward(session: Session, calls: pd.DataFrame) -> Ints:
    rows = np.flatnonzero(calls["kind"] == "operator")  # in the order of their table
    made_by = forward_of(session.table("operators"))
    forward = np.full(len(calls), -1, dtype=np.int64)
    forward[rows] = np.append(rows, -1)[made_by]
    return forward


def _are_steps(names: pd.Series) -> Bools:
    marks = [text.startswith(_STEP) for text in names.cat.categories]
    return np.array([*marks, False], dtype=bool)[names.cat.codes.to_numpy()]


def _only(calls: pd.DataFrame, kept: Bools) -> pd.DataFrame:
    if kept.all():
        return calls
    parent = kept_parents(calls["parent"].to_numpy(np.int64), kept)
    number = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)
    forward = number[calls["forward"].to_numpy(np.int64)[kept]]
    return calls[kept].reset_index(drop=True).assign(parent=parent, forward=forward)
