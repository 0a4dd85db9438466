"""What samplers measured of each GPU, whatever the sampler calls it."""

from __future__ import annotations

import pandas as pd

from maiprof_nb.analysis.metrics import metric_summary
from maiprof_nb.analysis.sampled_quantities import QUANTITIES, sampled
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.session import Session

_PLAIN = {"%": 0.01, "GiB": float(2**30)}  # one of these in shares, in bytes
_FIGURES = ("median", "mean", "p95", "maximum")


def measured(session: Session, *quantities: str) -> pd.DataFrame:
    """Figures of some quantities over the window of the figures.

    Parameters
    ----------
    session : Session
        What was recorded.
    *quantities : str
        Keys of `maiprof_nb.analysis.sampled_quantities.QUANTITIES`; all by default.

    Returns
    -------
    DataFrame
        One row a device and counter: ``quantity``, ``recording``, ``device``, ``counter``,
        ``samples``, ``median``, ``mean``, ``p95``, ``maximum``. Percentages are shares (0 to 1)
        and memory is bytes.
    """
    summary = metric_summary(session, window=figure_window(session).window)
    found = [_of(summary, quantity) for quantity in quantities or tuple(QUANTITIES)]
    return pd.concat(found, ignore_index=True)


def mean_of(session: Session, quantity: str) -> float | None:
    """Mean over time, over the devices and samplers that measured it; None without any."""
    found = measured(session, quantity)
    return None if found.empty else float(found["mean"].mean())


def _of(summary: pd.DataFrame, quantity: str) -> pd.DataFrame:
    rows = sampled(summary, quantity)
    rows = rows[rows["scale"].notna()]
    scale = rows["scale"] * _PLAIN.get(QUANTITIES[quantity].unit, 1.0)
    scaled = {figure: rows[figure] * scale for figure in _FIGURES}
    rows = rows.assign(quantity=quantity, **scaled)
    return rows[["quantity", "recording", "device", "counter", "samples", *_FIGURES]]
