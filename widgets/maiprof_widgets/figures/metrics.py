"""Sampled counters -> panels, one a quantity, each under its own name."""

from __future__ import annotations

import pandas as pd

from maiprof_widgets import escaping
from maiprof_widgets.figures.panels import Curve, Panel
from maiprof_widgets.figures.utilisation import device_name

# Panels in this order; a counter goes to the first whose names it is among.
_GROUPS: tuple[tuple[str, frozenset[str]], ...] = (
    (
        "GPU utilisation (NVML): share of time with a kernel resident",
        frozenset({"utilization.gpu", "DCGM_FI_DEV_GPU_UTIL", "sm", "GPUTL"}),
    ),
    (
        "SM activity (DCGM): share of SMs with a warp",
        frozenset({"DCGM_FI_PROF_SM_ACTIVE", "SMACT"}),
    ),
    (
        'SM occupancy (DCGM): resident warps, MAIProf\'s "SM utilisation"',
        frozenset({"DCGM_FI_PROF_SM_OCCUPANCY", "SMOCC"}),
    ),
    (
        "Tensor Core activity (DCGM): share of cycles in use",
        frozenset({"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "TENSO"}),
    ),
    ("GPU memory used", frozenset({"memory.used", "DCGM_FI_DEV_FB_USED", "fb", "FBUSD"})),
    ("Power", frozenset({"power.draw", "power.draw.instant", "DCGM_FI_DEV_POWER_USAGE", "pwr"})),
    ("Temperature", frozenset({"temperature.gpu", "DCGM_FI_DEV_GPU_TEMP", "gtemp"})),
    ("SM clock", frozenset({"clocks.sm", "clocks.current.sm", "DCGM_FI_DEV_SM_CLOCK", "pclk"})),
)
_PERCENT = {"ratio": 100.0}


def metric_panels(series: pd.DataFrame, everything: pd.DataFrame) -> list[Panel]:
    """Panels of the counters people ask for.

    Parameters
    ----------
    series : DataFrame
        Rows of `maiprof_nb.analysis.metrics.metric_series` for the window shown.
    everything : DataFrame
        The whole `counters` table: which panels and curves there are does not depend on
        the window.
    """
    made = []
    for title, names in _GROUPS:
        mine = everything[everything["counter"].isin(names)]
        keys = mine[["device", "counter", "unit"]].drop_duplicates()
        if keys.empty:
            continue
        unit = str(keys["unit"].iloc[0])
        several = len(set(keys["counter"])) > 1
        curves = tuple(_curve(series, *key, named=several) for key in keys.itertuples(index=False))
        made.append(
            Panel(
                title,
                "%" if unit in _PERCENT else unit,
                curves,
                height_px=96,
                bounds=(0, 105) if unit in {"%", *_PERCENT} else None,
                empty="no sample in this window",
            )
        )
    return made


def _curve(series: pd.DataFrame, device: object, counter: str, unit: str, *, named: bool) -> Curve:
    same_device = series["device"].isna() if pd.isna(device) else series["device"] == device
    rows = series[same_device & (series["counter"] == counter)]
    values = rows["value"].to_numpy() * _PERCENT.get(str(unit), 1.0)
    name = f"{device_name(device)} {escaping.text(counter)}" if named else device_name(device)
    return Curve(name, rows["ts_ns"].to_numpy(), values)
