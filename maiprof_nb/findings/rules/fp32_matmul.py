"""Single-precision products that TF32 or mixed precision would move to the tensor cores."""

from __future__ import annotations

import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis.matrix_units import plain_single_precision, tensor_core_devices, tf32
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.findings.rule import Answer, Found, NotApplicable, Passed, Rule, severity_of
from maiprof_nb.session import Session

WORTH_SHARE = 0.01  # of the window


def ask(session: Session) -> Answer:
    """Time of single-precision products and convolutions in kernels without tensor cores."""
    if tensor_core_devices(session) is False:
        return NotApplicable("The devices of this recording have no tensor cores.")
    found = plain_single_precision(session)
    if found is None:
        return NotApplicable(
            "No matrix product with device work was recorded, or neither its types nor its "
            "kernels' names tell its precision. Record with record_shapes=True."
        )
    by_device = found.groupby(["recording", "device"], dropna=False)["device_ns"].sum()
    spent = 0 if found.empty else int(by_device.max())
    window = max(figure_window(session).window.dur_ns, 1)
    share = spent / window
    if share < WORTH_SHARE:
        return Passed(
            f"{units.percent(share)} of the time is spent in single-precision products without "
            "tensor cores."
        )
    return Found(
        title=f"{units.duration(spent)} ({units.percent(share)}) in single-precision products "
        "without tensor cores",
        severity=severity_of(share),
        cost_ns=spent,
        evidence=[_row(row) for _, row in found.head(10).iterrows()],
        advice=None if tf32(session) else _WITHOUT_TF32,
        change=None if tf32(session) else "13 lines",
    )


def _row(row: pd.Series) -> dict[str, object]:
    return {
        "table": "operators",
        "recording": int(row["recording"]),
        "event": int(row["event"]),
        "name": str(row["name"]),
        "input_dims": None if pd.isna(row["input_dims"]) else str(row["input_dims"]),
        "calls": int(row["calls"]),
        "device_ns": int(row["device_ns"]),
    }


_WITHOUT_TF32 = (
    "This device has no TF32: use automatic mixed precision (torch.autocast round the forward "
    "pass, and a gradient scaler)."
)

RULE = Rule(
    id="fp32-matmul",
    question="How much time do single-precision products take that tensor cores could do?",
    figures=("operator-device-times",),
    view="ranking",
    advice='Call torch.set_float32_matmul_precision("high") once: TF32 keeps the range of float '
    "with 10 bits of mantissa. Or use automatic mixed precision.",
    change="1 line",
    ask=ask,
)
