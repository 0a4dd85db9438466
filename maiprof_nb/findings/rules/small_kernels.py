"""Much of the device's work comes in pieces too small to be worth a launch."""

from __future__ import annotations

import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis.small_work import SMALL_NS, small_work, work_in_window
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.findings.rule import Answer, Found, NotApplicable, Passed, Rule, severity_of
from maiprof_nb.session import Session

MANY_SHARE = 0.5  # of the pieces of device work: the typical one is small
WORTH_SHARE = 0.05  # of the window: less is within what recording itself adds


def ask(session: Session) -> Answer:
    """Share of device work below 10 us, and framework time in gaps that such work ends."""
    found = small_work(session)
    if found.empty:
        return NotApplicable("No device work lies in the window.")
    row = found.nlargest(1, "launch_gaps_ns").iloc[0]
    window = figure_window(session).window
    cost = int(row["launch_gaps_ns"])
    share = cost / max(window.dur_ns, 1)
    figure = (
        f"{units.percent(row['small_share'])} of {units.count(row['work'])} pieces of device work "
        f"last under {units.duration(SMALL_NS)}; the GPU waits "
        f"{units.percent(share)} of the time for their launches"
    )
    if row["small_share"] < MANY_SHARE or share < WORTH_SHARE:
        return Passed(f"{figure}.")
    return Found(
        title=figure,
        severity=severity_of(share),
        cost_ns=cost,
        evidence=_by_name(session, row),
    )


def _by_name(session: Session, row: pd.Series) -> list[dict[str, object]]:
    """The most frequent small pieces."""
    work = work_in_window(session)
    device = row["device"]
    same = work["device"].isna() if pd.isna(device) else work["device"] == device
    small = work[(work["recording"] == row["recording"]) & same & (work["dur_ns"] < SMALL_NS)]
    by = small.groupby("name", observed=True).agg(
        pieces=("dur_ns", "size"), device_ns=("dur_ns", "sum"), event=("event", "first")
    )
    return [
        {
            "table": "kernels",
            "recording": int(row["recording"]),
            "event": int(one.event),
            "name": str(one.Index),
            "pieces": int(one.pieces),
            "device_ns": int(one.device_ns),
        }
        for one in by.nlargest(10, "pieces").itertuples()
    ]


RULE = Rule(
    id="small-kernels",
    question="Does the device work in pieces too small for their launches?",
    figures=("gaps", "operator-device-times"),
    view="ranking",
    advice="Fuse them: torch.compile for element-wise chains, fused=True or foreach=True for the "
    "optimizer, CUDA graphs for a loop of fixed shapes, a larger batch.",
    change="1 line",
    ask=ask,
)
