"""The same data goes to the device, or back and forth, again and again."""

from __future__ import annotations

import numpy as np
import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis.copies import copies, repeated_copies
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.findings.rule import Answer, Found, NotApplicable, Passed, Rule, severity_of
from maiprof_nb.session import Session

WORTH_SHARE = 0.01  # of the window
OFTEN_A_STEP = 3  # an image and its mask may well be alike in size
SMALLEST_BYTES = 64 * 1024  # scalars and indices are the business of hidden synchronisations


def ask(session: Session) -> Answer:
    """Copies of one size and shape at least thrice in a step, and copies there and back."""
    every = copies(session)
    between = every[every["direction"].isin(["HtoD", "DtoH"])]
    if between.empty:
        return NotApplicable("No copy between host and device was recorded.")
    if not between["size_bytes"].notna().any():
        return NotApplicable("The copies do not say their size (ROCm), so equal ones are unknown.")
    table = repeated_copies(session)
    often = table[(table["calls_a_step"] >= OFTEN_A_STEP) & (table["size_bytes"] >= SMALLEST_BYTES)]
    again = often["total_ns"] * (1 - 1 / often["calls_a_step"])
    back = _there_and_back(between)
    window = max(figure_window(session).window.dur_ns, 1)
    spent = int(max(again.sum(), back["dur_ns"].sum()))
    share = spent / window
    if share < WORTH_SHARE:
        return Passed(f"Repeated copies take {units.percent(share)} of the time.")
    return Found(
        title=f"{units.duration(spent)} ({units.percent(share)}) in copies of a size and shape "
        f"that was copied before in the same step: {units.count(often['calls'].sum())} repeated, "
        f"{units.count(len(back))} there and back",
        severity=severity_of(share),
        cost_ns=spent,
        size_bytes=int((often["size_bytes"] * often["calls"]).sum() + back["size_bytes"].sum()),
        evidence=[_row(row) for _, row in often.head(5).iterrows()]
        + [_row(row) for _, row in back.head(5).iterrows()],
    )


def _there_and_back(between: pd.DataFrame) -> pd.DataFrame:
    """Copies to the device of what has just come from it: same size and step, right after."""
    large = between[between["size_bytes"].fillna(0) >= SMALLEST_BYTES]
    keys = ["recording", "device", "step", "size_bytes"]
    large = large.sort_values("ts_ns", kind="stable")
    before = large.groupby(keys, dropna=False)["direction"].shift()
    back = (large["direction"] == "HtoD") & (before == "DtoH")
    return large[back.to_numpy(bool)].sort_values("dur_ns", ascending=False)


def _row(row: pd.Series) -> dict[str, object]:
    time = row["total_ns"] if "total_ns" in row else row["dur_ns"]
    return {
        "table": "kernels",
        "recording": int(row["recording"]),
        "event": int(row["event"]),
        "direction": str(row["direction"]),
        "size_bytes": int(row["size_bytes"]),
        "input_dims": row["input_dims"] if isinstance(row["input_dims"], str) else None,
        "calls": int(row.get("calls", 1)),
        "total_ns": int(np.int64(time)),
    }


RULE = Rule(
    id="redundant-copies",
    question="Is the same data copied between host and device again and again?",
    figures=("breakdown",),
    view="ranking",
    advice="Keep the tensor on the device: copy constants and tables once before the loop, and do "
    "on the device what now goes to the host and back. A trace does not say which bytes were "
    "copied; equal size and shape in one step make it likely.",
    change="few lines",
    ask=ask,
)
