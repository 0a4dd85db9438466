"""Communication that no compute hides."""

from __future__ import annotations

import numpy as np
import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis._intervals import clip, minus, overlap
from maiprof_nb.analysis.device_activity import Activity, breakdown, require_activity
from maiprof_nb.analysis.steps import figure_window, steps
from maiprof_nb.findings.rule import Answer, Found, NotApplicable, Passed, Rule, severity_of
from maiprof_nb.session import Session

WORTH_SHARE = 0.1  # of the window; the limit of the removed TensorBoard plugin, too


def ask(session: Session) -> Answer:
    """Exposed communication of the device that has most of it, and the steps it falls into."""
    found = breakdown(session)
    window = figure_window(session).window
    of_device = {(one.recording, one.device): one for one in require_activity(session)}
    if not any(
        clip(one.communication, window.start_ns, window.end_ns).length_ns
        for one in of_device.values()
    ):
        return NotApplicable("No collective ran on a device in this recording.")
    worst = found.loc[found["exposed_communication_ns"].idxmax()]
    spent = int(worst["exposed_communication_ns"])
    share = spent / max(window.dur_ns, 1)
    hidden = units.percent(float(worst["overlap_share"]))
    if share < WORTH_SHARE:
        return Passed(
            f"Communication that no compute hides takes {units.percent(share)} of the time "
            f"({hidden} of it is hidden)."
        )
    device = None if pd.isna(worst["device"]) else int(worst["device"])
    activity = of_device[int(worst["recording"]), device]
    return Found(
        title=f"Communication that no compute hides takes {units.percent(share)} of the time on "
        f"{activity.label}; {hidden} of its communication is hidden",
        severity=severity_of(share),
        cost_ns=spent,
        evidence=[*_devices(found), *_steps(session, activity)],
    )


def _devices(found: pd.DataFrame) -> list[dict[str, object]]:
    ordered = found.sort_values("exposed_communication_ns", ascending=False)
    return [
        {
            "table": "breakdown",
            "recording": int(row.recording),
            "device": None if pd.isna(row.device) else int(row.device),
            "exposed_communication_ns": int(row.exposed_communication_ns),
            "overlap_share": None if pd.isna(row.overlap_share) else float(row.overlap_share),
        }
        for row in ordered.head(10).itertuples()
    ]


def _steps(session: Session, activity: Activity) -> list[dict[str, object]]:
    """Exposed communication by step, worst first."""
    marks = steps(session)
    marks = marks[marks["recording"] == activity.recording]
    exposed = minus(activity.communication, activity.compute)
    time = overlap(
        exposed,
        marks["ts_ns"].to_numpy(np.int64),
        (marks["ts_ns"] + marks["dur_ns"]).to_numpy(np.int64),
    )
    ordered = marks.assign(exposed_communication_ns=time).sort_values(
        "exposed_communication_ns", ascending=False
    )
    return [
        {
            "table": "steps",
            "recording": activity.recording,
            "step": int(row.step),
            "exposed_communication_ns": int(row.exposed_communication_ns),
        }
        for row in ordered.head(10).itertuples()
    ]


RULE = Rule(
    id="exposed-communication",
    question="How much communication does compute not hide?",
    figures=("breakdown",),
    view="utilisation",
    advice="Let gradients be sent while the backward pass still runs (DDP: larger bucket_cap_mb, "
    "no find_unused_parameters; FSDP: prefetch), accumulate gradients over several batches, or "
    "compress them. If ranks arrive at different times, this is waiting: look at the slowest.",
    change="few lines",
    ask=ask,
)
