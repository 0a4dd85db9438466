"""Launch rate, queue and queue delay -> panels over time."""

from __future__ import annotations

import pandas as pd

from maiprof_nb.analysis.launch_queue import DELAY, LAUNCHES, QUEUE
from maiprof_widgets import escaping
from maiprof_widgets.figures.panels import Curve, Panel
from maiprof_widgets.figures.utilisation import heat_panel

_FEW_DEVICES = 2  # more lie over one another: rows of colour
_SHOWN = (  # what, title, unit, what a value of the table is in that unit
    (LAUNCHES, "Launches a second", "1/s", 1.0),
    (QUEUE, "Launch queue: work launched and not yet started (mean)", "pieces", 1.0),
    (
        DELAY,
        "Queue delay: start of the work minus end of its launch call (median)",
        "ms",
        1e-6,
    ),
)


def launch_panels(found: pd.DataFrame) -> list[Panel]:
    """One panel a quantity, a curve (or a row of colour) a device.

    Parameters
    ----------
    found : DataFrame
        Rows of `maiprof_nb.analysis.launch_queue.launch_queue`.
    """
    made = []
    for what, title, unit, scale in _SHOWN:
        rows = found[found["what"] == what]
        rows = rows.assign(value=rows["value"].astype("float64") * scale)
        groups = list(rows.groupby("series", sort=False))
        if len(groups) > _FEW_DEVICES:
            made.append(heat_panel(f"{title}, one row a device", unit, groups, None))
        else:
            style = "area" if len(groups) == 1 and what != DELAY else "line"
            curves = tuple(_curve(str(label), part, style) for label, part in groups)
            made.append(Panel(title, unit, curves, height_px=110))
    return made


def _curve(label: str, rows: pd.DataFrame, style: str) -> Curve:
    known = rows[rows["value"].notna()]
    return Curve(
        escaping.text(label), known["ts_ns"].to_numpy("int64"), known["value"].to_numpy(), style
    )
