"""How idle and busy times of a device alternate."""

from __future__ import annotations

import numpy as np
import pandas as pd

from maiprof_nb.analysis._by_step import step_rows
from maiprof_nb.analysis._regular import period
from maiprof_nb.analysis.device_activity import gaps
from maiprof_nb.analysis.epochs import epochs_between
from maiprof_nb.analysis.steps import steps
from maiprof_nb.session import Session

LONG_SHARE = 0.1  # of a median step: a shorter gap is no time of its own
_NEARLY_ALL = 0.9  # of the steps


def alternation(session: Session) -> pd.DataFrame:
    """The long gaps of each device, and at what distance they come.

    Returns
    -------
    DataFrame
        One row a device with gaps: ``recording``, ``rank``, ``device``, ``gaps``,
        ``longest_ns``, ``limit_ns`` (a gap is long from a tenth of the median step on),
        ``long_gaps``, ``typical_ns`` (median of the long ones; missing without any),
        ``long_share`` (of the time in gaps), ``a_step`` (long gaps in the median step),
        ``every_steps`` (distance of the steps with a long gap: 1 if nine in ten have one;
        missing if they come at no one distance) and ``every_epochs`` (the same in epochs,
        where they were recorded). Without recorded steps no gap is long.

    Raises
    ------
    NotAnswerableError
        If no device work was recorded.
    """
    marks = steps(session)
    rows = []
    for (recording, device), mine in gaps(session).groupby(["recording", "device"], dropna=False):
        own = marks[marks["recording"] == recording].reset_index(drop=True)
        limit = LONG_SHARE * float(own["dur_ns"].median()) if len(own) else np.inf
        long = mine[mine["dur_ns"] >= limit]
        rows.append(
            {
                "recording": recording,
                "rank": mine["rank"].iloc[0],
                "device": device,
                "gaps": len(mine),
                "longest_ns": int(mine["dur_ns"].max()),
                "limit_ns": int(limit) if len(own) else pd.NA,
                "long_gaps": len(long),
                "typical_ns": int(long["dur_ns"].median()) if len(long) else pd.NA,
                "long_share": float(long["dur_ns"].sum() / mine["dur_ns"].sum()),
                **_distance(session, own, long),
            }
        )
    columns = [
        "recording", "rank", "device", "gaps", "longest_ns", "limit_ns", "long_gaps",
        "typical_ns", "long_share", "a_step", "every_steps", "every_epochs",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns).astype(
        dict.fromkeys(("limit_ns", "typical_ns", "every_steps", "every_epochs"), "Int64")
    )


def _distance(session: Session, marks: pd.DataFrame, long: pd.DataFrame) -> dict[str, object]:
    """Steps and epochs between steps in which a long gap ends."""
    found: dict[str, object] = {"a_step": 0, "every_steps": pd.NA, "every_epochs": pd.NA}
    if marks.empty or long.empty:
        return found
    # A gap belongs to the step whose work ends it.
    ends = (long["ts_ns"] + long["dur_ns"] - 1).to_numpy(np.int64)
    row = step_rows(marks, long["recording"].to_numpy(np.int64), ends)
    counts = np.bincount(row[row >= 0], minlength=len(marks))
    found["a_step"] = int(np.median(counts))
    at = np.flatnonzero(counts)
    if len(at) >= _NEARLY_ALL * len(marks):
        found["every_steps"] = 1
    elif every := period(at, len(marks)):
        recording = int(marks["recording"].iloc[0])
        moments = marks["ts_ns"].to_numpy(np.int64)[at]
        found["every_steps"] = every
        found["every_epochs"] = epochs_between(session, recording, moments) or pd.NA
    return found
