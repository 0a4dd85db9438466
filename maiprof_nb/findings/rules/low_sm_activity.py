"""The device works, but on few of its multiprocessors."""

from __future__ import annotations

from dataclasses import dataclass

from maiprof_nb import units
from maiprof_nb.analysis.device_activity import activities, breakdown
from maiprof_nb.analysis.measured import mean_of
from maiprof_nb.analysis.sm_efficiency import sm_efficiency
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.findings._wording import mean_of_devices
from maiprof_nb.findings.rule import Answer, Found, NotApplicable, Passed, Rule, severity_of
from maiprof_nb.session import Session

WORTH_SHARE = 0.01  # of the window: what idle multiprocessors cost beside an idle device
LOW = 0.5  # below half, DCGM's guide calls the use of the GPU ineffective


@dataclass(frozen=True, slots=True)
class _Figure:
    """SM activity with its name, and what stands beside it."""

    name: str
    value: float
    beside: str


def ask(session: Session) -> Answer:
    """Measured SM activity, or else the estimate from launch configurations."""
    try:
        figure = _measured(session) or _estimated(session)
    except NotAnswerableError as problem:
        return NotApplicable(
            f"SM activity was not sampled, and cannot be estimated: {problem.sentence.rstrip('.')}."
        )
    title = f"{figure.name} is {units.percent(figure.value)}{figure.beside}"
    if figure.value >= LOW:
        return Passed(f"{title}.")
    window = figure_window(session).window.dur_ns
    evidence = {"table": "sm_activity", "figure": figure.name, "value": figure.value}
    if not activities(session):
        return Found(title=title, severity=severity_of(LOW - figure.value), evidence=[evidence])
    busy = float(breakdown(session)["busy_share"].mean())
    unused = max(busy - figure.value, 0.0)
    title = f"{title}; the device works {units.percent(busy)} of the time"
    if unused < WORTH_SHARE:
        return Passed(f"{title}, so that what it works on leaves {units.percent(unused)} unused.")
    return Found(
        title=title,
        severity=severity_of(unused),
        cost_ns=int(unused * window),
        evidence=[evidence | {"busy_share": busy}],
        advice=_IDLE if figure.value > busy / 2 else None,
    )


def _measured(session: Session) -> _Figure | None:
    active = mean_of(session, "sm activity")
    occupancy = mean_of(session, "sm occupancy")
    resident = "" if occupancy is None else f", SM occupancy {units.percent(occupancy)}"
    return None if active is None else _Figure("SM activity (measured)", active, resident)


def _estimated(session: Session) -> _Figure:
    found = sm_efficiency(session)
    occupancy = float(found["est_occupancy"].mean())
    return _Figure(
        "SM efficiency (estimated from launch configurations)",
        float(found["est_sm_efficiency"].mean()),
        f", est. achieved occupancy {units.percent(occupancy)}{mean_of_devices(len(found))}",
    )


_IDLE = (
    "Most of the loss is idle time, not small kernels: find what the device waits for first "
    "(gaps), then look here again."
)

RULE = Rule(
    id="low-sm-activity",
    question="Does the device's work fill its multiprocessors?",
    figures=("breakdown",),
    view="metrics",
    advice="Kernels start too few blocks: give each launch more work (a larger batch, fused "
    "operators, torch.compile), or run independent work on several streams.",
    change="2 settings",
    ask=ask,
)
