"""Matrix work runs beside the tensor cores."""

from __future__ import annotations

from maiprof_nb import units
from maiprof_nb.analysis.matrix_units import tensor_core_devices
from maiprof_nb.analysis.measured import mean_of
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.analysis.tensor_cores import tensor_cores
from maiprof_nb.findings.rule import Answer, Found, NotApplicable, Passed, Rule, severity_of
from maiprof_nb.session import Session

LOW_SHARE = 0.05  # of matrix work: a stray half-precision product is not mixed precision
WORTH_SHARE = 0.01  # of the window; below it nothing is to be gained
UNTOLD_SHARE = 0.5  # of matrix work whose kernels' names decide nothing
ASLEEP = 0.01  # measured tensor-core activity


def ask(session: Session) -> Answer:
    """Kernel time of operators that autocast would run in lower precision, by kernels' names."""
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
    asleep = used < LOW_SHARE * matrix if measured is None or used else measured < ASLEEP
    if not asleep or matrix < WORTH_SHARE * window:
        return _disagreement(used / matrix, measured) or Passed(
            f"Tensor cores do {units.percent(used / matrix)} of the matrix work, by kernels' "
            f"names{said}."
        )
    cost = (matrix - used - untold) // max(len(found), 1)
    return Found(
        title=f"Tensor cores do {units.percent(used / matrix)} of the matrix work, which takes "
        f"{units.percent(matrix / max(window, 1))} of the time{said}",
        severity=severity_of(cost * len(found) / max(window, 1)),
        cost_ns=cost,
        evidence=[
            {"table": "tensor_cores"} | {str(k): _plain(v) for k, v in row.items()}
            for row in found.to_dict("records")
        ],
    )


_PARTS = ("eligible_tensor_core_ns", "eligible_undecided_ns")


def _disagreement(by_name: float, measured: float | None) -> Found | None:
    """Names and measurement that cannot both be right."""
    if measured is None or measured >= ASLEEP or by_name < UNTOLD_SHARE:
        return None
    return Found(
        title=f"By name {units.percent(by_name)} of the matrix work is in tensor-core kernels, but "
        f"their measured activity is {units.percent(measured)}",
        severity="low",
        evidence=[{"table": "tensor_cores", "by_name": by_name, "measured": measured}],
        advice="The kernels may wait for memory: look at the roofline of the largest products, "
        "and check that the sampler watched this GPU.",
        change="none",
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
