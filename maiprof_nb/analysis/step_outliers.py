"""Steps that took much longer than the others, and what was different in them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._by_step import step_rows, sums_by_step
from maiprof_nb.analysis._call_sites import is_user_code
from maiprof_nb.analysis._intervals import overlap
from maiprof_nb.analysis._nesting import nearest_code
from maiprof_nb.analysis._outliers import FAR_IN_SIGMA, FAR_SHARE, SIGMA_OF_MAD
from maiprof_nb.analysis._remember import remembered
from maiprof_nb.analysis.gap_causes import CAUSES, cause_column, gap_causes
from maiprof_nb.analysis.operator_ranking import calls_with_python
from maiprof_nb.analysis.phases import PHASES, phase_calls, phase_time
from maiprof_nb.analysis.steps import figure_window, steps
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.session import Session

Ints = npt.NDArray[np.int64]

FEWEST_STEPS = 5


@remembered
def step_outliers(session: Session) -> pd.DataFrame:
    """Steps far above the median of their recording, with what they spent the time on.

    Returns
    -------
    DataFrame
        Slowest first: ``recording``, ``rank``, ``step``, ``ts_ns``, ``dur_ns``, ``median_ns``,
        ``excess_ns`` (over the median), and what grew most against the median step, each with
        by how much: ``phase``, ``phase_excess_ns`` (host time of the step's thread), ``cause``,
        ``cause_excess_ns`` (of gaps; missing without device work), ``call``,
        ``call_excess_ns`` (own host time of an operator or of the user's Python function, with
        what that calls in libraries).

    Raises
    ------
    NotAnswerableError
        If no recording has five steps.

    Notes
    -----
    Far is more than five times the scatter (median absolute deviation, scaled to that of a
    normal distribution) and more than a fifth of the median above it. The three reasons look
    at the same time from three sides and do not add up.
    """
    marks = _in_window(session)
    sizes = marks.groupby("recording")["step"].transform("size")
    marks = marks[sizes >= FEWEST_STEPS]
    if marks.empty:
        raise NotAnswerableError(
            f"no recording has {FEWEST_STEPS} steps to compare",
            remedy="Call prof.step() after each step of the loop and record more of them",
        )
    far, median = _far(marks)
    found = marks[far].assign(median_ns=median[far])
    found["excess_ns"] = found["dur_ns"] - found["median_ns"]
    columns = ["recording", "rank", "step", "ts_ns", "dur_ns", "median_ns", "excess_ns"]
    found = found[columns]
    sides = {
        "phase": host_time_by_step(session, marks),
        "cause": _gap_time_by_step(session, marks),
        "call": _call_time_by_step(session, marks, found.index),
    }
    for side, spent in sides.items():
        name, excess = _grown_most(spent, marks, found.index)
        found[side] = name
        found[f"{side}_excess_ns"] = pd.array(excess, dtype="Int64")
    return found.sort_values("excess_ns", ascending=False, ignore_index=True)


def _in_window(session: Session) -> pd.DataFrame:
    window = figure_window(session).window
    marks = steps(session)
    whole = (marks["ts_ns"] >= window.start_ns) & (
        marks["ts_ns"] + marks["dur_ns"] <= window.end_ns
    )
    return marks[whole].reset_index(drop=True)


def _far(marks: pd.DataFrame) -> tuple[npt.NDArray[np.bool_], Ints]:
    by = marks.groupby("recording")["dur_ns"]
    median = by.transform("median")
    scatter = (marks["dur_ns"] - median).abs().groupby(marks["recording"]).transform("median")
    limit = np.maximum(FAR_IN_SIGMA * SIGMA_OF_MAD * scatter, FAR_SHARE * median)
    return (marks["dur_ns"] - median > limit).to_numpy(), median.to_numpy(np.int64)


def host_time_by_step(session: Session, marks: pd.DataFrame) -> pd.DataFrame:
    """Time of the step's own thread in each phase; rows as `marks`, one column a phase, in ns."""
    calls = phase_calls(session)
    threads = session.table("steps")[["recording", "pid", "tid"]].astype(
        {"pid": "str", "tid": "str"}
    )
    calls = calls.merge(threads.drop_duplicates(), on=["recording", "pid", "tid"])
    spent = np.zeros((len(marks), len(PHASES)), dtype=np.int64)
    for recording, rows in calls.groupby("recording"):
        mine = (marks["recording"] == recording).to_numpy()
        start = marks["ts_ns"].to_numpy(np.int64)[mine]
        end = start + marks["dur_ns"].to_numpy(np.int64)[mine]
        for code in range(len(PHASES)):
            spent[mine, code] = overlap(phase_time(rows, code), start, end)
    return pd.DataFrame(spent, index=marks.index, columns=list(PHASES))


def _gap_time_by_step(session: Session, marks: pd.DataFrame) -> pd.DataFrame:
    """Idle time by cause, over the devices of a recording on average; empty without devices."""
    try:
        found = gap_causes(session)
    except NotAnswerableError:
        return pd.DataFrame(index=marks.index)
    recording = found["recording"].to_numpy(np.int64)
    # A gap belongs to the step whose work ends it.
    row = step_rows(marks, recording, (found["ts_ns"] + found["dur_ns"] - 1).to_numpy(np.int64))
    devices = found.groupby("recording")["device"].nunique(dropna=False)
    each = marks["recording"].map(devices).fillna(1).to_numpy()
    columns = {
        cause: sums_by_step(marks, row, found[cause_column(cause)].to_numpy(np.int64)) // each
        for cause in CAUSES
    }
    return pd.DataFrame(columns, index=marks.index)


def _call_time_by_step(session: Session, marks: pd.DataFrame, far: pd.Index) -> pd.DataFrame:
    """Own host time by operator or user's function, of those that have any in a far step."""
    calls = calls_with_python(session)
    row = step_rows(marks, calls["recording"].to_numpy(np.int64), calls["ts_ns"].to_numpy(np.int64))
    if not np.isin(row, far).any():
        return pd.DataFrame(index=marks.index)
    kind = calls["kind"].to_numpy(object)
    names = calls["name"].astype("str").to_numpy(object)
    number = np.arange(len(calls))
    named = (kind == "operator") | ((kind == "python") & is_user_code(calls["name"]))
    owner = nearest_code(np.where(named, number, -1), calls["parent"].to_numpy(np.int64))
    counted = (owner >= 0) & (row >= 0)
    own_ns = pd.Series(calls["self_ns"].to_numpy(np.int64)[counted])
    spent = pd.DataFrame({"row": row[counted], "call": names[owner[counted]], "ns": own_ns})
    table = spent.pivot_table(index="row", columns="call", values="ns", aggfunc="sum", fill_value=0)
    table = table.reindex(marks.index, fill_value=0)
    return table.loc[:, (table.loc[far] > 0).any()]


def _grown_most(
    spent: pd.DataFrame, marks: pd.DataFrame, far: pd.Index
) -> tuple[list[str | None], list[int | None]]:
    """For each far step the column that exceeds its recording's median most, and by how much."""
    if spent.empty or not len(far):
        return [None] * len(far), [None] * len(far)
    median = spent.groupby(marks["recording"]).transform("median")
    over = (spent - median).loc[far]
    best, excess = over.idxmax(axis=1), over.max(axis=1)
    grown = excess > 0
    return (
        [str(name) if more else None for name, more in zip(best, grown, strict=True)],
        [int(ns) if more else None for ns, more in zip(excess, grown, strict=True)],
    )
