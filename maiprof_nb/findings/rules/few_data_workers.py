"""Too few threads or processes prepare the input."""

from __future__ import annotations

import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis.data_workers import NONE, PROCESSES, data_workers
from maiprof_nb.analysis.gap_causes import gap_causes
from maiprof_nb.analysis.recurring_gaps import recurring_input
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.findings.rule import (
    Answer,
    Found,
    NotApplicable,
    Passed,
    Rule,
    severity_of,
)
from maiprof_nb.findings.rules._worst import worst_device
from maiprof_nb.session import Session

WORTH_SHARE = 0.05  # of the median step, idle for input; as for input-bound
FULLY_BUSY = 0.8  # of the loop's wait; a worker that also hands over batches reaches no more


def ask(session: Session) -> Answer:
    """Whether the workers are the limit, and how many would keep up with the loop.

    Looks at the median step, so that a read of the next sub-dataset now and then does not
    count. Where the training thread loads by itself there is no worker at all; where threads
    load, they are too few if they are busy nearly all the time the loop waits and could not do
    a step's work in the rest of the step even if they worked ahead. Worker processes are not in
    the trace, so their number is not known. The cost is the idle time for input without what
    comes back every few steps.
    """
    found = data_workers(session)
    if found.empty:
        return NotApplicable(
            "No loading of data was recorded on the thread that marks the steps. A DataLoader of "
            "torch is seen by itself; a loader of your own needs with_stack=True."
        )
    row = found.assign(wait_share=_share(found)).nlargest(1, "wait_share").iloc[0]
    usual = f"the GPU waits {units.duration(row['wait_ns'])} for input in the median step"
    if row["wait_share"] < WORTH_SHARE:
        return Passed(f"{usual[0].upper()}{usual[1:]}, {units.percent(row['wait_share'])} of it.")
    if row["workers_are"] not in (NONE, PROCESSES):
        said = _threads_suffice(row)
        if said:
            return Passed(f"{said} ({usual}).")
    cost = _cost(session, int(row["recording"]))
    share = cost / max(figure_window(session).window.dur_ns, 1)
    return Found(
        title=f"{_who(row)}, and {usual}; {_enough(row)}",
        severity=severity_of(share),
        cost_ns=cost,
        evidence=[_plain(row)],
        advice=_advice(row),
    )


def _share(found: pd.DataFrame) -> pd.Series:
    return found["wait_ns"] / (found["wait_ns"] + found["rest_ns"])


def _threads_suffice(row: pd.Series) -> str:
    """Why the number of threads is not at fault; empty if it is."""
    if row["busy_share"] < FULLY_BUSY:
        return (
            f"{units.count(row['workers'])} worker threads are busy only "
            f"{units.percent(row['busy_share'])} of the time the loop waits for them"
        )
    if row["enough"] <= row["workers"]:
        return (
            f"{units.count(row['workers'])} worker threads are enough, "
            f"{units.count(row['enough'])} would keep up if they worked ahead of the loop"
        )
    return ""


def _who(row: pd.Series) -> str:
    if row["workers_are"] == NONE:
        return "The training thread loads the data itself"
    if row["workers_are"] == PROCESSES:
        return "The DataLoader's worker processes do not keep up"
    return (
        f"{units.count(row['workers'])} worker threads load the data, busy "
        f"{units.percent(row['busy_share'])} of the wait"
    )


def _enough(row: pd.Series) -> str:
    step = row["wait_ns"] + row["rest_ns"]
    if row["workers_are"] == PROCESSES:
        return f"{step / row['rest_ns']:.1f} times as many would keep up"
    return f"{units.count(row['enough'])} working ahead of the loop would keep up"


def _advice(row: pd.Series) -> str:
    if row["workers_are"] == PROCESSES:
        return "Raise num_workers of the DataLoader towards the host's cores."
    if row["workers_are"] == NONE:
        number = max(int(row["enough"]), 1)
        return (
            f"Set num_workers of the DataLoader to {number} or more, so that batches are made "
            "while the GPU works."
        )
    return (
        f"Raise the number of worker threads (num_worker_threads, num_workers) to "
        f"{int(row['enough'])} or more, up to the host's cores; with a loader that does not "
        "prefetch, every further core shortens the wait."
    )


def _cost(session: Session, recording: int) -> int:
    found = gap_causes(session)
    mine = worst_device(found[found["recording"] == recording], "input_ns")
    spent = int(mine["input_ns"].sum())
    try:
        again = recurring_input(session)
    except NotAnswerableError:
        return spent
    again = again[again["recording"] == recording]
    return spent - (int(again["excess_ns"].max()) if len(again) else 0)


def _plain(row: pd.Series) -> dict[str, object]:
    return {
        "table": row["table"],
        "recording": int(row["recording"]),
        "event": int(row["event"]),
        "workers_are": row["workers_are"],
        "workers": None if pd.isna(row["workers"]) else int(row["workers"]),
        "enough": None if pd.isna(row["enough"]) else int(row["enough"]),
        **{
            name: None if pd.isna(row[name]) else float(row[name])
            for name in ("busy_share", "loading_ns", "wait_ns", "rest_ns", "work_ns")
        },
    }


RULE = Rule(
    id="few-data-workers",
    question="Do too few workers prepare the input?",
    figures=("gaps", "phases", "steps"),
    view="gaps",
    advice="Raise num_workers of the DataLoader, or num_worker_threads of your own loader, up to "
    "the host's cores.",
    change="1 line",
    ask=ask,
)
