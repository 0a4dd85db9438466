"""What samplers measured of each GPU, whatever the sampler calls it."""

from __future__ import annotations

import pandas as pd

from maiprof_nb.analysis.metrics import metric_summary
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.session import Session

# What is measured -> the names samplers give it. Each is a figure of its own; NVML's
# utilisation, SM activity and SM occupancy are three different things.
QUANTITIES: dict[str, tuple[str, ...]] = {
    "gpu utilisation": ("utilization.gpu", "DCGM_FI_DEV_GPU_UTIL", "GPUTL", "sm"),
    "SM activity": ("DCGM_FI_PROF_SM_ACTIVE", "SMACT"),
    "SM occupancy": ("DCGM_FI_PROF_SM_OCCUPANCY", "SMOCC"),
    "tensor-core activity": ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "TENSO"),
    "DRAM activity": ("DCGM_FI_PROF_DRAM_ACTIVE", "DRAMA"),
    "memory used": ("memory.used", "DCGM_FI_DEV_FB_USED", "FBUSD"),
    "memory total": ("memory.total", "DCGM_FI_DEV_FB_TOTAL", "FBTTL"),
    "memory free": ("memory.free", "DCGM_FI_DEV_FB_FREE", "FBFRE"),
}
_SCALES = {"%": 0.01, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "kB": 1e3, "MB": 1e6, "GB": 1e9}
_FIGURES = ("median", "mean", "p95", "maximum")


def measured(session: Session, *quantities: str) -> pd.DataFrame:
    """Figures of some quantities over the window of the figures.

    Parameters
    ----------
    session : Session
        What was recorded.
    *quantities : str
        Names of `QUANTITIES`; all by default.

    Returns
    -------
    DataFrame
        One row a device and counter: ``quantity``, ``recording``, ``device``, ``counter``,
        ``samples``, ``median``, ``mean``, ``p95``, ``maximum``. Percentages are shares (0 to 1)
        and memory is bytes.
    """
    wanted = quantities or tuple(QUANTITIES)
    of_counter = {name: what for what in wanted for name in QUANTITIES[what]}
    summary = metric_summary(session, window=figure_window(session).window)
    found = summary[summary["counter"].isin(of_counter)].reset_index(drop=True)
    scale = found["unit"].astype("str").map(_SCALES).fillna(1.0).astype("float64")
    scaled = {figure: found[figure] * scale for figure in _FIGURES}
    quantity = found["counter"].astype("str").map(of_counter)
    found = found.assign(quantity=quantity, **scaled)
    return found[["quantity", "recording", "device", "counter", "samples", *_FIGURES]]


def mean_of(session: Session, quantity: str) -> float | None:
    """Mean over time, over the devices and samplers that measured it; None without any."""
    found = measured(session, quantity)
    return None if found.empty else float(found["mean"].mean())
