"""The profiler itself takes so much that the host's figures cannot be believed."""

from __future__ import annotations

from maiprof_nb import units
from maiprof_nb.analysis.device_activity import activities, breakdown
from maiprof_nb.analysis.recording_cost import (
    LAUNCH_NS,
    OPERATOR_NS,
    PYTHON_NS,
    recording_cost,
)
from maiprof_nb.findings._wording import times
from maiprof_nb.findings.rule import Answer, Found, NotApplicable, Passed, Rule
from maiprof_nb.session import Session

TOO_MUCH, FAR_TOO_MUCH = 0.15, 0.3  # of the window: as much as many a fix wins; twice that
TOO_FEW = 10  # host events: their rate is an accident
HIDDEN_BELOW = 0.05  # idle share: a device that never waits does not see a slow host


def ask(session: Session) -> Answer:
    """Events a second on the busiest host thread, times what an event costs to record.

    What the profiler itself recorded as overhead counts instead where that is more. An estimate:
    the cost an event is a setting (`maiprof_nb.analysis.recording_cost`), measured on a CPU. With
    devices that hardly idle a slow host changes nothing, and the rule passes.
    """
    found = recording_cost(session)
    if found.empty:
        return NotApplicable(
            "No host event begins in the window. Record with ProfilerActivity.CPU."
        )
    row = found.iloc[0]
    calls = int(row["operators"] + row["launches"] + row["python_calls"])
    if calls < TOO_FEW and not row["recorded_overhead_ns"]:
        return NotApplicable(
            f"The window holds only {times(calls, 'host event')}, which tell no rate. Record whole "
            "steps."
        )
    share = float(row["share"])
    figure = (
        f"Recording is estimated to take {units.percent(share)} of the busiest host thread's time: "
        f"{units.count(row['operators_per_s'])} operators, {units.count(row['launches_per_s'])} "
        f"runtime calls and {units.count(row['python_per_s'])} Python functions a second"
    )
    if share < TOO_MUCH:
        return Passed(f"{figure}.")
    if activities(session):
        idle = 1 - float(breakdown(session)["busy_share"].min())
        if idle < HIDDEN_BELOW:
            return Passed(
                f"{figure}; but the devices are idle only {units.percent(idle)} of the time, so "
                "they hardly waited for it."
            )
    python = row["python_per_s"] * PYTHON_NS
    return Found(
        title=f"{figure}. Gaps and host times are too distorted to conclude from",
        severity="high" if share >= FAR_TOO_MUCH else "medium",
        cost_ns=int(row["cost_ns"]),
        evidence=[
            {
                "table": "recording_cost",
                "recording": int(row["recording"]),
                "pid": row["pid"],
                "tid": row["tid"],
                "operators": int(row["operators"]),
                "launches": int(row["launches"]),
                "python_calls": int(row["python_calls"]),
                "recorded_overhead_ns": int(row["recorded_overhead_ns"]),
                "operator_cost_ns": OPERATOR_NS,
                "launch_cost_ns": LAUNCH_NS,
                "python_cost_ns": PYTHON_NS,
            }
        ],
        advice=(
            "Record again without with_stack=True, and sample the Python stacks with py-spy."
            if python > row["operators_per_s"] * OPERATOR_NS
            else RULE.advice
        ),
    )


RULE = Rule(
    id="profiler-overhead",
    question="Does the profiler itself take too much to conclude?",
    figures=("operator-times",),
    view="utilisation",
    advice="Record again without record_shapes, profile_memory and with_stack, or with "
    "ProfilerActivity.CUDA alone, and compare the times of a step.",
    change="1 line",
    ask=ask,
)
