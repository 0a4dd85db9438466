"""Sampled counters -> panels, one a quantity, each under its own name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pandas as pd

from maiprof_nb.analysis.sampled_quantities import QUANTITIES, sampled
from maiprof_widgets import escaping
from maiprof_widgets.figures.clock_limits import clock_limits_panel
from maiprof_widgets.figures.panels import Curve, Panel
from maiprof_widgets.figures.utilisation import device_name

_EMPTY = "no sample in this window"
_TITLES = {  # panels in this order
    "gpu utilisation": "GPU utilisation: share of time with a kernel resident",
    "engine activity": "Graphics engine activity (DCGM): share of time in use",
    "sm activity": "SM activity (DCGM): share of SMs with a warp",
    "sm occupancy": 'SM occupancy (DCGM): resident warps, MAIProf\'s "SM utilisation"',
    "tensor activity": "Tensor Core activity (DCGM): share of cycles in use",
    "cpu utilisation": "CPU utilisation: share of all cores that was busy",
    "memory used": "GPU memory used",
    "power": "Power",
    "temperature": "Temperature",
    "sm clock": "SM clock",
    "pcie throughput": "PCIe throughput",
    "nvlink throughput": "NVLink throughput",
}


def metric_panels(
    series: pd.DataFrame,
    everything: pd.DataFrame,
    beside: Mapping[str, Panel] = MappingProxyType({}),
) -> list[Panel]:
    """Panels of the counters people ask for.

    Parameters
    ----------
    series : DataFrame
        Rows of `maiprof_nb.analysis.metrics.metric_series` for the window shown.
    everything : DataFrame
        The whole `counters` table: which panels and curves there are does not depend on
        the window.
    beside : Mapping of str to Panel
        Panels from elsewhere, each to stand beneath those of a quantity, measured or not.

    Notes
    -----
    The curves of a panel share its unit, whatever theirs was. A counter whose unit measures
    something else has a panel of its own.
    """
    made = []
    for quantity, title in _TITLES.items():
        mine = sampled(everything, quantity)
        mine = mine[["device", "counter", "unit", "scale"]].drop_duplicates()
        fits = mine["scale"].notna()
        if fits.any():
            made.append(_panel(title, QUANTITIES[quantity].unit, series, mine[fits]))
        for unit, rows in mine[~fits].groupby("unit", observed=True, sort=False):
            made.append(_panel(title, escaping.text(unit), series, rows.assign(scale=1.0)))
        if quantity in beside:
            made.append(beside[quantity])
    limits = clock_limits_panel(series, everything)
    return [*made, limits] if limits else made


def _panel(title: str, unit: str, series: pd.DataFrame, keys: pd.DataFrame) -> Panel:
    several = len(set(keys["counter"])) > 1
    return Panel(
        title,
        unit,
        tuple(_curve(series, *key, named=several) for key in keys.itertuples(index=False)),
        height_px=96,
        bounds=(0, 105) if unit == "%" else None,
        empty=_EMPTY,
    )


def _curve(
    series: pd.DataFrame, device: object, counter: str, unit: object, scale: float, *, named: bool
) -> Curve:
    same_unit = series["unit"].isna() if pd.isna(unit) else series["unit"] == unit
    rows = series[_of(series, device) & (series["counter"] == counter) & same_unit]
    name = f"{device_name(device)} {escaping.text(counter)}" if named else device_name(device)
    return Curve(name, rows["ts_ns"].to_numpy(), rows["value"].to_numpy() * scale)


def _of(frame: pd.DataFrame, device: object) -> pd.Series:
    return frame["device"].isna() if pd.isna(device) else frame["device"] == device
