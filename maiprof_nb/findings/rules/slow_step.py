"""Some steps take much longer than the others."""

from __future__ import annotations

from typing import Any

import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis.step_outliers import step_outliers
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.findings._wording import times
from maiprof_nb.findings.rule import Answer, Found, Passed, Rule, severity_of
from maiprof_nb.session import Session


def ask(session: Session) -> Answer:
    """Steps five times the scatter and a fifth of the median above it, and why.

    The scatter is the median absolute deviation, which outliers do not move. Why: the phase,
    the cause of gaps and the call that grew most against the median step.
    """
    found = step_outliers(session)
    if found.empty:
        return Passed("No step is far above the median.")
    by = found.groupby("recording")["excess_ns"].sum()
    worst = found[found["recording"] == by.idxmax()]
    row = worst.iloc[0]
    cost = int(worst["excess_ns"].sum())
    return Found(
        title=f"{times(len(worst), 'step')} took much longer than the median of "
        f"{units.duration(row['median_ns'])}, step {int(row['step'])} longest with "
        f"{units.duration(row['dur_ns'])}{_why(row)}",
        severity=severity_of(cost / max(figure_window(session).window.dur_ns, 1)),
        cost_ns=cost,
        evidence=[_plain(one) for one in worst.head(10).to_dict("records")],
    )


def _why(row: pd.Series) -> str:
    said = [
        f"{units.duration(row[f'{side}_excess_ns'])} more {text.format(row[side])}"
        for side, text in (
            ("phase", "in {}"),
            ("cause", "idle ({})"),
            ("call", "in {}"),
        )
        if pd.notna(row[f"{side}_excess_ns"]) and row[f"{side}_excess_ns"] >= row["excess_ns"] / 5
    ]
    return f" ({', '.join(said)})" if said else ""


def _plain(row: dict[Any, Any]) -> dict[str, object]:
    shown = {"table": "steps", "recording": int(row["recording"]), "step": int(row["step"])}
    for name in ("ts_ns", "dur_ns", "median_ns", "excess_ns"):
        shown[name] = int(row[name])
    for side in ("phase", "cause", "call"):
        excess = row[f"{side}_excess_ns"]
        shown[side] = row[side]
        shown[f"{side}_excess_ns"] = None if pd.isna(excess) else int(excess)
    return shown


RULE = Rule(
    id="slow-step",
    question="Do some steps take much longer than the others?",
    figures=("steps", "phases"),
    view="phases",
    advice="Select the slow step and a usual one in turn and compare them; reads, checkpoints, "
    "evaluation, logging and compilation belong into another thread or before the loop.",
    change="depends on the cause",
    ask=ask,
)
