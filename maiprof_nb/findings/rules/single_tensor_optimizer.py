"""The optimizer launches a kernel or more for every parameter."""

from __future__ import annotations

from maiprof_nb import units
from maiprof_nb.analysis.phases import phases
from maiprof_nb.analysis.steps import steps
from maiprof_nb.findings._per_step import optimizer_launches
from maiprof_nb.findings.rule import Answer, Found, NotApplicable, Passed, Rule, severity_of
from maiprof_nb.session import Session

MANY_A_STEP = 50
SMALL_NS = 15_000


def ask(session: Session) -> Answer:
    """Pieces of device work the optimizer launches a step, and how long each lasts."""
    found = phases(session).set_index("phase")
    optimizer = found.loc["optimizer"]
    if not optimizer["kernels"]:
        return NotApplicable(
            "No device work was launched inside an optimizer's step. Record whole training steps "
            "with CPU and CUDA activities."
        )
    each = float(optimizer["mean_kernel_ns"])
    a_step, said = optimizer_launches(session, int(optimizer["kernels"]))
    figure = f"{said}, {units.duration(each)} each"
    if a_step < MANY_A_STEP or each > SMALL_NS:
        return Passed(f"The optimizer launches {figure}.")
    cost = int(optimizer["host_ns"])
    count = steps(session)["step"].nunique()
    return Found(
        title=f"The optimizer launches {figure}, and keeps the host busy "
        f"{units.duration(cost / max(count, 1))} {'a step' if count else 'in all'}",
        severity=severity_of(float(optimizer["host_share"])),
        cost_ns=cost,
        evidence=[{"table": "phases", "phase": "optimizer", **_plain(optimizer)}],
    )


def _plain(row: object) -> dict[str, float]:
    return {str(key): float(value) for key, value in dict(row).items()}  # type: ignore[call-overload]


RULE = Rule(
    id="single-tensor-optimizer",
    question="Does the optimizer launch many small kernels?",
    figures=("phases",),
    view="phases",
    advice="Pass fused=True (or foreach=True) to the optimizer, so that one kernel works on many "
    "parameters.",
    change="1 line",
    ask=ask,
)
