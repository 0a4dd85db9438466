"""Matrix work runs beside the tensor cores."""

from __future__ import annotations

from maiprof_nb import units
from maiprof_nb.analysis.matrix_units import tensor_core_devices
from maiprof_nb.analysis.measured import mean_of
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.analysis.tensor_cores import tensor_cores
from maiprof_nb.analysis.tensor_cores_measured import NAMES_SAY_MORE, tensor_cores_measured
from maiprof_nb.findings._wording import mean_of_devices
from maiprof_nb.findings.rule import Answer, Found, NotApplicable, Passed, Rule, severity_of
from maiprof_nb.session import Session

LOW_SHARE = 0.05  # of matrix work: a stray half-precision product is not mixed precision
WORTH_SHARE = 0.01  # of the window; below it nothing is to be gained
UNTOLD_SHARE = 0.5  # of matrix work whose kernels' names decide nothing
ASLEEP = 0.01  # measured tensor-core activity


def ask(session: Session) -> Answer:
    """Kernel time of operators that autocast would run in lower precision, by kernels' names.

    Names and measured activity that cannot both be right are found as such, with severity low:
    tensor-core kernels in 10 % of the window or more and less than 1 % measured, or 2 % measured
    and at least twice the share of the window that such and undecided kernels fill.
    """
    found = tensor_cores(session)
    if tensor_core_devices(session) is False:
        return NotApplicable("The devices of this recording have no tensor cores.")
    matrix = int(found["eligible_ns"].sum())
    if not matrix:
        return NotApplicable(
            "No matrix product, convolution or attention with device work was recorded. Record "
            "with CPU and CUDA activities."
        )
    used, untold = (int(found[c].sum()) for c in _PARTS)
    measured = mean_of(session, "tensor activity")
    window = figure_window(session).window.dur_ns * len(found)
    said = "" if measured is None else f"; measured activity {units.percent(measured)}"
    if measured is None and untold >= UNTOLD_SHARE * matrix:
        return NotApplicable(
            f"The names of {units.percent(untold / matrix)} of the matrix kernels do not say "
            "whether they use tensor cores. Sample DCGM_FI_PROF_PIPE_TENSOR_ACTIVE beside the job."
        )
    if conflict := _disagreement(session):
        return conflict
    asleep = used < LOW_SHARE * matrix if measured is None or used else measured < ASLEEP
    if not asleep or matrix < WORTH_SHARE * window:
        return Passed(
            f"Tensor cores do {units.percent(used / matrix)} of the matrix work, by kernels' "
            f"names{said}."
        )
    cost = (matrix - used - untold) // max(len(found), 1)
    return Found(
        title=f"Tensor cores do {units.percent(used / matrix)} of the matrix work, which takes "
        f"{units.percent(matrix / max(window, 1))} of the time{mean_of_devices(len(found))}{said}",
        severity=severity_of(cost * len(found) / max(window, 1)),
        cost_ns=cost,
        evidence=[
            {"table": "tensor_cores"} | {str(k): _plain(v) for k, v in row.items()}
            for row in found.to_dict("records")
        ],
    )


_PARTS = ("eligible_tensor_core_ns", "eligible_undecided_ns")


def _disagreement(session: Session) -> Found | None:
    """Names and measurement that cannot both be right."""
    found = tensor_cores_measured(session)
    rows = found[found["disagreement"] != ""]
    if rows.empty:
        return None
    first = rows.iloc[0]
    named = first["tensor_core_ns"] / first["window_ns"]
    asleep = first["disagreement"] == NAMES_SAY_MORE
    return Found(
        title=f"By name tensor-core kernels run {units.percent(named)} of the time, but measured "
        f"tensor-core activity is {units.percent(first['measured_activity'])}",
        severity="low",
        evidence=[
            {"table": "tensor_cores"} | {str(k): _plain(v) for k, v in row.items()}
            for row in rows.drop(columns="disagreement").to_dict("records")
        ],
        advice=_WAITING if asleep else _UNNAMED,
        change="none",
    )


_WAITING = (
    "The kernels may wait for memory: look at the roofline of the largest products, and check "
    "that the sampler watched this GPU."
)
_UNNAMED = (
    "Kernels that use tensor cores go by names that say otherwise, or another job shares the "
    "GPU: believe what was measured, and check that the sampler watched this GPU."
)


def _plain(value: object) -> float | int | None:
    return value if isinstance(value, int | float) and value == value else None  # noqa: PLR0124


RULE = Rule(
    id="no-tensor-cores",
    question="Does matrix work run on the tensor cores?",
    figures=("operator-device-times",),
    view="metrics",
    advice="Use automatic mixed precision: torch.autocast round the forward pass, and a gradient "
    "scaler for float16.",
    change="13 lines",
    ask=ask,
)
