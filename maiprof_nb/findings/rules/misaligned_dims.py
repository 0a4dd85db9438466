"""Half-precision products whose sizes tensor cores cannot take whole."""

from __future__ import annotations

import numpy as np
import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis._flops import HALF, TYPES
from maiprof_nb.analysis.matrix_calls import matrix_calls
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.findings.rule import Answer, Found, NotApplicable, Passed, Rule, severity_of
from maiprof_nb.session import Session

WORTH_SHARE = 0.01  # of the window
SMALLEST = 16  # a shorter side is a vector or a gate; padding it would cost more than it gives
_BYTES = 16  # tensor cores load rows that are multiples of 16 bytes
_WEIGHT_IS_TRANSPOSED = "aten::linear"  # so that its inner length lies along memory, too


def ask(session: Session) -> Answer:
    """Columns of the result (and inner length of linear layers) against the 16-byte rows."""
    calls = matrix_calls(session)
    width = calls["type"].map({kind: TYPES[kind][0] for kind in TYPES}).astype("float64")
    small = (calls["type"].isin(HALF) | (width == 1)) & calls["n"].notna()
    calls = calls[small].assign(multiple=(_BYTES / width[small]).astype("int64"))
    if calls.empty:
        return NotApplicable(
            "There is no half-precision product whose shapes, types and device work are known. "
            "Record with torch.profiler.profile(record_shapes=True), with mixed precision on."
        )
    odd = calls[_columns_are_odd(calls) | _inner_is_odd(calls)]
    window = figure_window(session).window.dur_ns
    spent = _of_one_device(odd)
    if spent < WORTH_SHARE * window:
        return Passed(
            f"{units.percent(spent / max(window, 1))} of the time is spent in half-precision "
            "products with sizes that tensor cores cannot take whole."
        )
    worst = odd.iloc[0]
    return Found(
        title=f"{units.duration(spent)} ({units.percent(spent / max(window, 1))}) in "
        f"half-precision products with sizes that are no multiple of {worst['multiple']}, most in "
        f"{worst['name']} of {worst['input_dims']}",
        severity=severity_of(spent / max(window, 1)),
        cost_ns=spent,
        evidence=[
            {
                "table": "operators",
                "recording": int(row.recording),
                "event": int(row.event),
                "name": str(row.name),
                "input_dims": str(row.input_dims),
                "calls": int(row.calls),
                "device_ns": int(row.device_ns),
            }
            for row in odd.head(10).itertuples(index=False)
        ],
        advice=f"Pad the size (vocabulary, classes, hidden width) to a multiple of "
        f"{worst['multiple']}, better of 64.",
    )


def _odd(size: pd.Series, multiple: pd.Series) -> pd.Series:
    return (size >= SMALLEST) & (size % multiple != 0)


def _columns_are_odd(calls: pd.DataFrame) -> pd.Series:
    """Columns of the result; fused attention never writes its own, so their number is free."""
    return ~_is_attention(calls) & _odd(calls["n"], calls["multiple"])


def _inner_is_odd(calls: pd.DataFrame) -> pd.Series:
    """Inner length, where it is known to lie along memory: weights of linear, width of heads."""
    inner = (calls["name"] == _WEIGHT_IS_TRANSPOSED) | _is_attention(calls)
    return inner & _odd(calls["k"], calls["multiple"])


def _is_attention(calls: pd.DataFrame) -> pd.Series:
    return calls["name"].astype("str").str.contains("scaled_dot_product")


def _of_one_device(calls: pd.DataFrame) -> int:
    """Time on the device that has most of it."""
    sums = calls.groupby(["recording", "device"], dropna=False)["device_ns"].sum()
    return int(np.max(sums.to_numpy(np.int64), initial=0))


RULE = Rule(
    id="misaligned-dims",
    question="Do the sizes of half-precision products fit the tensor cores?",
    figures=("operator-device-times",),
    view="ranking",
    advice="Pad the size to a multiple of 8 (16 for 8-bit types), better of 64.",
    change="1 line",
    ask=ask,
)
