"""What kernels say of the device's use -> panels to stand beside what was measured."""

from __future__ import annotations

import pandas as pd

from maiprof_nb.analysis.kernel_use import (
    NAME_UNDECIDED,
    OCCUPANCY,
    SM_EFFICIENCY,
    TENSOR_CORES,
)
from maiprof_widgets import escaping
from maiprof_widgets.figures.panels import Curve, Panel

_PANELS = {  # the measured quantity beneath which each stands
    "sm activity": ("est. SM efficiency (from the trace)", (SM_EFFICIENCY,)),
    "sm occupancy": (
        "est. achieved occupancy (from the trace): of the kernels that run",
        (OCCUPANCY,),
    ),
    "tensor activity": (
        "Tensor Core kernels by name (from the trace): share of time in them",
        (TENSOR_CORES, NAME_UNDECIDED),
    ),
}


def kernel_use_panels(use: pd.DataFrame) -> dict[str, Panel]:
    """Panels by the measured quantity that each stands beside.

    Parameters
    ----------
    use : DataFrame
        Rows of `maiprof_nb.analysis.kernel_use.kernel_use`.
    """
    made = {}
    for quantity, (title, shown) in _PANELS.items():
        rows = use[use["what"].isin(shown)]
        curves = [
            _curve(f"{escaping.text(str(label))}{_suffix(str(what))}", part, str(what))
            for (label, what), part in rows.groupby(["series", "what"], sort=False)
        ]
        if curves:
            made[quantity] = Panel(title, "%", tuple(curves), height_px=96, bounds=(0, 105))
    return made


def _suffix(what: str) -> str:
    return f", {what}" if what == NAME_UNDECIDED else ""


def _curve(name: str, rows: pd.DataFrame, what: str) -> Curve:
    style = "dash" if what == NAME_UNDECIDED else "line"
    values = rows["value"].to_numpy("float64") * 100
    return Curve(name, rows["ts_ns"].to_numpy("int64"), values, style)
