"""The host launches work more slowly than the device does it."""

from __future__ import annotations

import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis.gap_causes import gap_causes
from maiprof_nb.analysis.launch_rate import LONGEST_LAUNCH_GAP_NS, launch_rate
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.findings.rule import Answer, Found, Passed, Rule, severity_of
from maiprof_nb.findings.rules._worst import gap_rows, worst_device
from maiprof_nb.session import Session

WORTH_SHARE = 0.05  # of the window: less is within what recording itself adds


def ask(session: Session) -> Answer:
    """Framework time in gaps, where the median kernel is shorter than the launch interval.

    Only time inside operators and launch calls counts; Python between them is told in the
    title. A gap that began while the host waited for the device is hidden-sync's, and one
    above 2 ms is a stall (a library that is loaded, memory that is set up), not a late launch.
    """
    every = gap_causes(session)
    found = worst_device(every[every["dur_ns"] <= LONGEST_LAUNCH_GAP_NS], "launch_bound_ns")
    window = figure_window(session).window
    rate = _rate_of(launch_rate(session), found)
    spent = int(found["launch_bound_ns"].sum())
    share = spent / max(window.dur_ns, 1)
    figure = (
        f"The GPU waits {units.percent(share)} of the time for operators and launches"
        if spent
        else "No gap was spent in operators and launches"
    )
    if rate is None or share < WORTH_SHARE:
        return Passed(f"{figure}.")
    speed = (
        f"{units.count(rate['launches_per_s'])} launches/s; median piece of work "
        f"{units.duration(rate['median_work_ns'])}, median interval between launches "
        f"{units.duration(rate['median_interval_ns'])}"
    )
    if not rate["median_work_ns"] < rate["median_interval_ns"]:
        return Passed(f"{figure}, but launches come faster than the work lasts ({speed}).")
    python = int(found["Python_ns"].sum()) / max(window.dur_ns, 1)
    between = f", and {units.percent(python)} for Python between them" if python >= 0.01 else ""
    return Found(
        title=f"{figure}{between} ({speed})",
        severity=severity_of(share),
        cost_ns=spent,
        evidence=[_plain(rate), *gap_rows(found, "launch_bound_ns")],
    )


def _rate_of(rates: pd.DataFrame, found: pd.DataFrame) -> pd.Series | None:
    """The row of the device whose gaps were given."""
    if found.empty:
        return None
    where = found.iloc[:1][["recording", "device"]]
    return rates.merge(where, on=["recording", "device"]).iloc[0]


def _plain(rate: pd.Series) -> dict[str, object]:
    return {
        "table": "launch_rate",
        "recording": int(rate["recording"]),
        **{
            name: float(rate[name])
            for name in ("work", "launches_per_s", "median_work_ns", "median_interval_ns")
        },
    }


RULE = Rule(
    id="launch-bound",
    question="Does the device wait for the host to launch work?",
    figures=("gaps", "operator-times"),
    view="gaps",
    advice="Give each launch more work: a larger batch, torch.compile (mode='reduce-overhead' "
    "replays CUDA graphs), fused operators.",
    change="2 settings (batch size, learning rate), or 1 line for torch.compile",
    ask=ask,
)
