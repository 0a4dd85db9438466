"""Step 1 asks: is the GPU busy."""

from __future__ import annotations

import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis.device_activity import breakdown, gaps
from maiprof_nb.analysis.steps import figure_window, steps
from maiprof_nb.findings.trust import reservations
from maiprof_nb.findings.verdict import Verdict
from maiprof_nb.session import Session

MOSTLY_IDLE, NOTICEABLY_IDLE = 0.5, 0.15
_LONG_GAP_SHARE = 0.1  # a gap is long from this share of a median step


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
    found = gaps(session)
    same = (
        found["device"].isna() if pd.isna(device["device"]) else found["device"] == device["device"]
    )
    mine = found[(found["recording"] == device["recording"]) & same]
    if mine.empty:
        return "There is no gap of 1 µs or more."
    total = mine["dur_ns"].sum()
    marks = steps(session)
    limit = (
        _LONG_GAP_SHARE * marks["dur_ns"].median() if len(marks) else mine["dur_ns"].quantile(0.99)
    )
    long = mine[mine["dur_ns"] >= limit]
    text = f"{units.count(len(mine))} gaps, the longest {units.duration(mine['dur_ns'].max())}"
    if long.empty or len(long) == len(mine):
        return f"{text}."
    return (
        f"{text}; {units.count(len(long))} of them last {units.duration(limit)} or more and hold "
        f"{units.percent(long['dur_ns'].sum() / total)} of the idle time."
    )


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
