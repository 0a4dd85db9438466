"""Step 1 asks: is the GPU busy."""

from __future__ import annotations

import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis.alternation import alternation
from maiprof_nb.analysis.device_activity import breakdown
from maiprof_nb.analysis.recurring_gaps import recurring_input
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.findings._wording import every, times
from maiprof_nb.findings.trust import reservations
from maiprof_nb.findings.verdict import Verdict
from maiprof_nb.session import Session

MOSTLY_IDLE, NOTICEABLY_IDLE = 0.5, 0.15


def utilisation_verdict(session: Session) -> Verdict:
    """Say how busy the devices were over the window of the figures.

    Raises
    ------
    NotAnswerableError
        If no device work was recorded.
    """
    parts = breakdown(session)
    window = figure_window(session)
    worst = parts.sort_values("busy_share").iloc[0]
    idle_share = 1 - worst["busy_share"]
    device = _device(worst, several=len(parts) > 1)
    figure = (
        f"{device} was idle {units.percent(idle_share)} of {units.duration(window.window.dur_ns)} "
        f"({window.reason}): {units.duration(worst['compute_ns'])} compute, "
        f"{units.duration(worst['exposed_communication_ns'])} communication alone, "
        f"{units.duration(worst['exposed_copy_ns'])} copies alone, "
        f"{units.duration(worst['idle_ns'])} idle. {_alternation(session, worst)}"
    )
    return Verdict(
        question="Is the GPU busy?",
        figure=figure,
        meaning=_meaning(idle_share),
        attempt=_attempt(idle_share),
        evidence=parts,
        reservations=reservations(session, "gpu-utilisation", "breakdown", "gaps"),
    )


def _device(row: pd.Series, *, several: bool) -> str:
    name = "The GPU" if pd.isna(row["device"]) else f"GPU {int(row['device'])}"
    if not several:
        return name
    rank = "" if pd.isna(row["rank"]) else f" of rank {int(row['rank'])}"
    return f"{name}{rank}, the least busy,"


def _alternation(session: Session, device: pd.Series) -> str:
    """How the idle time is cut up."""
    found = _of_device(alternation(session), device)
    if found.empty:
        return "There is no gap of 1 µs or more."
    row = found.iloc[0]
    every_gap = f"{units.count(row['gaps'])} gaps, the longest {units.duration(row['longest_ns'])}"
    if not row["long_gaps"]:
        return f"{every_gap}."
    text = (
        f"{units.percent(row['long_share'])} of the idle time is "
        f"{times(row['long_gaps'], 'gap')} of {_about(row)}{_when(row)}"
    )
    rest = row["gaps"] - row["long_gaps"]
    return (
        f"{text}{_again(session, device, row)}."
        + f" The other {units.count(rest)} are shorter than {units.duration(row['limit_ns'])}."
        * bool(rest)
    )


def _of_device(found: pd.DataFrame, device: pd.Series) -> pd.DataFrame:
    number = device["device"]
    same = found["device"].isna() if pd.isna(number) else found["device"] == number
    return found[(found["recording"] == device["recording"]) & same]


def _about(row: pd.Series) -> str:
    return f"{'about ' * int(row['long_gaps'] > 1)}{units.duration(row['typical_ns'])}"


def _when(row: pd.Series) -> str:
    if pd.isna(row["every_steps"]):
        return ""
    if row["every_steps"] > 1:
        return f", {every(row)}"
    return f", {units.count(row['a_step']) if row['a_step'] > 1 else 'one'} a step"


def _again(session: Session, device: pd.Series, row: pd.Series) -> str:
    """The longer wait among gaps that come in every step."""
    if row["every_steps"] is pd.NA or row["every_steps"] != 1:
        return ""
    try:
        found = _of_device(recurring_input(session), device)
    except NotAnswerableError:
        return ""
    found = found[found["every_steps"].notna()]
    if found.empty:
        return ""
    wait = found.iloc[0]
    return f"; {every(wait)} it is {units.duration(wait['typical_ns'])}, for input"


def _meaning(idle_share: float) -> str:
    if idle_share > MOSTLY_IDLE:
        return (
            "The GPU waits for more than half of the time: faster kernels cannot help before the "
            "host feeds it. Step 2 shows what the host does meanwhile."
        )
    if idle_share > NOTICEABLY_IDLE:
        return (
            "A part worth having is lost to waiting. Step 2 shows what the host does in the gaps; "
            "steps 3 and 4 what the GPU does in between."
        )
    return (
        "The GPU has work nearly all the time. Busy does not mean well used: one small kernel "
        "keeps it busy too. Steps 3 and 4 show how well the work fits it."
    )


def _attempt(idle_share: float) -> str:
    return "Go on to step 2." if idle_share > NOTICEABLY_IDLE else "Go on to step 3."
