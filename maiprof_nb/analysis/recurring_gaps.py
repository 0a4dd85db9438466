"""Idle time for input that comes back every so many steps."""

from __future__ import annotations

import numpy as np
import pandas as pd

from maiprof_nb.analysis._by_step import step_rows, sums_by_step
from maiprof_nb.analysis._outliers import FAR_IN_SIGMA, FAR_SHARE, SIGMA_OF_MAD
from maiprof_nb.analysis._regular import period
from maiprof_nb.analysis._remember import remembered
from maiprof_nb.analysis.epochs import epochs_between
from maiprof_nb.analysis.gap_causes import gap_causes
from maiprof_nb.analysis.steps import steps
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.session import Session

FEWEST_STEPS = 8


@remembered
def recurring_input(session: Session) -> pd.DataFrame:
    """Steps in which a device waits much longer for input than in the median step.

    Returns
    -------
    DataFrame
        One row a device that has such steps, dearest first: ``recording``, ``rank``,
        ``device``, ``long_steps`` (tuple of their numbers), ``every_steps`` (their distance;
        missing unless they are at least two, come at one distance, and none is missing
        inside the recording), ``every_epochs`` (epochs begun from one of them to the next, if
        stacks were recorded), ``typical_ns`` (median wait of a long step), ``usual_ns`` (of all
        steps), ``excess_ns`` (of the long steps over the usual, summed).

    Raises
    ------
    NotAnswerableError
        If no device work, or fewer than eight steps, were recorded.
    """
    marks = steps(session)
    sizes = marks.groupby("recording")["step"].transform("size")
    marks = marks[sizes >= FEWEST_STEPS].reset_index(drop=True)
    found = gap_causes(session)
    if marks.empty:
        raise NotAnswerableError(
            f"what comes back every few steps takes {FEWEST_STEPS} recorded steps to see",
            remedy="Call prof.step() after each step of the loop and record more of them",
        )
    rows = []
    for (recording, device), mine in found.groupby(["recording", "device"], dropna=False):
        own = marks[marks["recording"] == recording].reset_index(drop=True)
        row = _of_one(own, mine) if len(own) else None
        if row is not None:
            at = own["ts_ns"][own["step"].isin(row["long_steps"])]
            regular = row["every_steps"] is not None
            epochs = epochs_between(session, int(recording), at) if regular else None
            where = {"recording": recording, "rank": mine["rank"].iloc[0], "device": device}
            rows.append(where | row | {"every_epochs": epochs})
    columns = [
        "recording", "rank", "device", "long_steps", "every_steps", "every_epochs",
        "typical_ns", "usual_ns", "excess_ns",
    ]  # fmt: skip
    made = pd.DataFrame(rows, columns=columns).astype(
        {"every_steps": "Int64", "every_epochs": "Int64"}
    )
    return made.sort_values("excess_ns", ascending=False, ignore_index=True)


def _of_one(marks: pd.DataFrame, mine: pd.DataFrame) -> dict[str, object] | None:
    """Long waits of one device over the steps of its recording."""
    # A gap belongs to the step whose work ends it.
    ends = (mine["ts_ns"] + mine["dur_ns"] - 1).to_numpy(np.int64)
    row = step_rows(marks, mine["recording"].to_numpy(np.int64), ends)
    wait = sums_by_step(marks, row, mine["input_ns"].to_numpy(np.int64))
    usual = float(np.median(wait))
    scatter = SIGMA_OF_MAD * float(np.median(np.abs(wait - usual)))
    limit = max(FAR_IN_SIGMA * scatter, FAR_SHARE * float(marks["dur_ns"].median()))
    long = wait - usual > limit
    if not long.any():
        return None
    return {
        "long_steps": tuple(int(number) for number in marks["step"].to_numpy()[long]),
        "every_steps": period(np.flatnonzero(long), len(marks)),
        "typical_ns": int(np.median(wait[long])),
        "usual_ns": int(usual),
        "excess_ns": int((wait[long] - usual).sum()),
    }
