"""Before and after a fix: which rows became cheaper, beyond the noise between steps."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._intervals import overlap
from maiprof_nb.analysis._noise import FEWEST, adjusted, mann_whitney
from maiprof_nb.analysis.operator_ranking import operator_calls
from maiprof_nb.analysis.phases import (
    PHASES,
    phase_calls,
    phase_time,
    threads_of_the_loop,
    work_with_phase,
)
from maiprof_nb.analysis.steps import steps
from maiprof_nb.errors import UsageError
from maiprof_nb.session import Session

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

KINDS = ("operator", "kernel", "phase")
FIGURES = ("calls", "self_ns", "total_ns", "device_ns")
_HEADLINE = {"operator": "total_ns", "kernel": "device_ns", "phase": "total_ns"}
BEYOND_NOISE = 0.05


def compare(
    before: Session, after: Session, *, by: str = "operator", work_ratio: float = 1.0
) -> pd.DataFrame:
    """Rows of two recordings of one job, matched by name.

    Parameters
    ----------
    before, after : Session
        Profiled alike: compare profiled runs with profiled runs only.
    by : str
        ``operator`` (operators, ranges and launches by host time with callees, recursion
        counted once), ``kernel`` (device work by device time) or ``phase`` (of the training
        loop, by host time).
    work_ratio : float
        Work in a step of `after` relative to one of `before`: 2 after doubling the batch. The
        figures of `after` are divided by it.

    Returns
    -------
    DataFrame
        ``name``; for each of calls, ``self_ns``, ``total_ns``, ``device_ns`` the mean a step
        ``..._before`` and ``..._after``; ``delta_ns`` (after - before of the time the
        comparison is by), ``ratio`` (after / before), ``p_value`` (rank-sum test over the
        steps, adjusted for the number of rows), ``beyond_noise`` and ``outcome``: ``cheaper``,
        ``dearer``, ``no difference beyond noise``, ``new``, ``gone`` or ``too few steps``.
        Largest absolute difference first.

    Raises
    ------
    UsageError
        If `by` is not known, or a recording has no steps: totals of windows of different length
        cannot be compared.

    Notes
    -----
    Calls outside the steps are left out. A row that is cheaper does not mean that the job is
    faster: the time may wait elsewhere. What tells new rows and gone rows apart from noise is
    their presence, not a test.
    """
    if by not in KINDS:
        raise UsageError(f"there is no comparison by {by}", remedy=f"One of: {', '.join(KINDS)}")
    parts = {"before": _by_step(before, by), "after": _by_step(after, by)}
    names = pd.Index(sorted(set(parts["before"][0].index) | set(parts["after"][0].index)))
    figures = pd.DataFrame(index=names)
    samples = []
    for side, (means, per_step) in parts.items():
        scale = work_ratio if side == "after" else 1.0
        known = means.reindex(names).fillna(0.0) / scale
        for figure in FIGURES:
            figures[f"{figure}_{side}"] = known[figure]
        samples.append(per_step.reindex(names).fillna(0.0).to_numpy(np.float64) / scale)
    headline = _HEADLINE[by]
    was, now = figures[f"{headline}_before"], figures[f"{headline}_after"]
    p_value = adjusted(mann_whitney(*samples))
    enough = min(sample.shape[1] for sample in samples) >= FEWEST
    beyond = p_value < BEYOND_NOISE
    there = [(figures[f"calls_{side}"] > 0) | (figures[f"{headline}_{side}"] > 0) for side in parts]
    usual = [np.median(sample, axis=1) for sample in samples]
    beyond &= usual[0] != usual[1]
    less = usual[1] < usual[0]
    outcome = np.select(
        [~there[0], ~there[1], np.full(len(names), not enough), beyond & less, beyond],
        ["new", "gone", "too few steps", "cheaper", "dearer"],
        "no difference beyond noise",
    )
    found = figures.assign(
        delta_ns=now - was,
        ratio=np.where(was > 0, now / was.where(was > 0, 1.0), np.nan),
        p_value=p_value,
        beyond_noise=beyond,
        outcome=outcome,
    )
    order = found["delta_ns"].abs().sort_values(ascending=False, kind="stable").index
    return found.loc[order].rename_axis("name").reset_index()


def _by_step(session: Session, by: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Means a step of each figure by name, and the headline by name and step."""
    marks = steps(session)
    if marks.empty:
        raise UsageError(
            "a recording has no steps to compare by",
            remedy="Call prof.step() once an iteration, so that steps are marked",
        )
    rows = {"operator": _operators, "kernel": _kernels, "phase": _phases}[by](session, marks)
    rows = rows[rows["step"] >= 0]
    per_step = rows.pivot_table(
        index="name", columns="step", values=_HEADLINE[by], aggfunc="sum", observed=True
    )
    per_step = per_step.reindex(columns=range(len(marks))).fillna(0.0)
    means = rows.groupby("name", observed=True)[list(FIGURES)].sum() / len(marks)
    return means, per_step


def _operators(session: Session, marks: pd.DataFrame) -> pd.DataFrame:
    calls = operator_calls(session)
    step = _step_at(marks, calls["recording"], calls["ts_ns"])
    outermost = calls["outermost"].to_numpy(bool)
    return pd.DataFrame(
        {
            "name": calls["name"].astype("str"),
            "step": step,
            "calls": 1,
            "self_ns": calls["self_ns"],
            "total_ns": calls["dur_ns"].where(outermost, 0),
            "device_ns": calls["device_total_ns"].where(outermost, 0),
        }
    )


def _kernels(session: Session, marks: pd.DataFrame) -> pd.DataFrame:
    work = session.table("kernels")
    moment = _launch_times(session, work)
    dur = work["dur_ns"]
    return pd.DataFrame(
        {
            "name": work["name"].astype("str"),
            "step": _step_at(marks, work["recording"], moment),
            "calls": 1,
            "self_ns": dur,
            "total_ns": dur,
            "device_ns": dur,
        }
    )


def _phases(session: Session, marks: pd.DataFrame) -> pd.DataFrame:
    calls = phase_calls(session)
    work = work_with_phase(session, calls)
    step = _step_at(marks, work["recording"], _launch_times(session, work))
    names = np.array(PHASES, dtype=object)
    device = pd.DataFrame({"name": names[work["phase"]], "step": step, "calls": 1})
    device = device.assign(self_ns=0, total_ns=0, device_ns=work["dur_ns"].to_numpy())
    parts = [device]
    loop = threads_of_the_loop(calls)
    start = marks["ts_ns"].to_numpy(np.int64)
    end = start + marks["dur_ns"].to_numpy(np.int64)
    for code, name in enumerate(PHASES):
        spent = np.zeros(len(marks), dtype=np.int64)
        for recording, rows in loop.groupby("recording"):
            mine = (marks["recording"] == recording).to_numpy()
            spent[mine] = overlap(phase_time(rows, code), start[mine], end[mine])
        parts.append(
            pd.DataFrame(
                {
                    "name": name,
                    "step": np.arange(len(marks)),
                    "calls": 0,
                    "self_ns": spent,
                    "total_ns": spent,
                    "device_ns": 0,
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def _launch_times(session: Session, work: pd.DataFrame) -> pd.Series:
    """When work was launched; its own start where that is not recorded."""
    launches = session.table("launches")
    launches = launches[launches["correlation"].notna()]
    launches = launches.drop_duplicates(["recording", "correlation"])
    launches = launches[["recording", "correlation", "ts_ns"]].rename(columns={"ts_ns": "at_ns"})
    joined = work[["recording", "correlation", "ts_ns"]].merge(
        launches, on=["recording", "correlation"], how="left"
    )
    moments = joined["at_ns"].fillna(joined["ts_ns"]).astype("int64")
    return moments.set_axis(work.index)


def _step_at(marks: pd.DataFrame, recording: pd.Series, moment: pd.Series) -> Ints:
    """Position of the step each moment lies in, or -1."""
    found = np.full(len(moment), -1, dtype=np.int64)
    for number, rows in marks.groupby("recording"):
        mine = (recording == number).to_numpy()
        start = rows["ts_ns"].to_numpy(np.int64)
        at = moment.to_numpy(np.int64)[mine]
        place = np.searchsorted(start, at, side="right") - 1
        end = start + rows["dur_ns"].to_numpy(np.int64)
        inside = (place >= 0) & (at < end[np.maximum(place, 0)])
        positions = marks.index.get_indexer(rows.index)
        found[mine] = np.where(inside, positions[np.maximum(place, 0)], -1)
    return found
