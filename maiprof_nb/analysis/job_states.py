"""One job recorded several times, state by state: what it does a second, and with what."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from maiprof_nb.analysis.device_activity import breakdown
from maiprof_nb.analysis.phase_steps import phase_steps
from maiprof_nb.analysis.steps import figure_window, steps
from maiprof_nb.analysis.tensor_cores import tensor_cores
from maiprof_nb.errors import UsageError
from maiprof_nb.session import Session


def job_states(states: Mapping[str, Session], rows_per_step: Mapping[str, float]) -> pd.DataFrame:
    """Speed and use of the device in each state of a job.

    Parameters
    ----------
    states : Mapping of str to Session
        The recordings, in the order of the changes; profiled alike.
    rows_per_step : Mapping of str to float
        How much work a step is (rows, samples, tokens) in each state: twice as much after
        doubling the batch. Recordings do not say it.

    Returns
    -------
    DataFrame
        One row a state: ``state``, ``steps``, ``rows_per_s`` (work of the recorded steps over
        the window of the figures), ``speed`` (over the first state's), ``idle_share`` and
        ``tensor_core_share`` (of kernel time, by name; the worst device's, and missing without
        kernels), and host time by phase for the work of one step of the first state:
        ``data loading_ns`` and so on.

    Raises
    ------
    NotAnswerableError
        If a state has no steps or no device work.
    UsageError
        If the work of a step is not stated for a state.
    """
    missing = [name for name in states if not rows_per_step.get(name)]
    if missing:
        raise UsageError(
            f"the work of a step is not stated for {missing[0]}",
            remedy='Give it for every state: rows_per_step={"before": 1024, "after": 2048}',
        )
    made = pd.DataFrame([_row(name, one, rows_per_step) for name, one in states.items()])
    first = float(made["rows_per_s"].iloc[0])
    made.insert(3, "speed", made["rows_per_s"] / first)
    work = made["state"].map(dict(rows_per_step)) / float(rows_per_step[made["state"].iloc[0]])
    phases = [name for name in made if str(name).endswith("_ns")]
    made[phases] = made[phases].div(work, axis=0)
    return made


def _row(name: str, session: Session, rows_per_step: Mapping[str, float]) -> dict[str, object]:
    found = phase_steps(session)
    count = int(steps(session)["step"].nunique())
    window = figure_window(session).window
    devices = breakdown(session)
    cores = tensor_cores(session)
    share = (cores["tensor_core_ns"] / cores["kernel_ns"]).min() if len(cores) else float("nan")
    spent = found.groupby("phase", observed=False)["host_ns"].sum()
    marks = max(found[["recording", "step"]].drop_duplicates().shape[0], 1)
    return {
        "state": name,
        "steps": count,
        "rows_per_s": rows_per_step[name] * count / (window.dur_ns / 1e9),
        "idle_share": float((devices["idle_ns"] / devices["window_ns"]).max()),
        "tensor_core_share": float(share),
        **{f"{phase}_ns": float(ns) / marks for phase, ns in spent.items()},
    }
