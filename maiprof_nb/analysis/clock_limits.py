"""What held the device's clock down, from reasons the driver gives or from the clock itself."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from maiprof_nb.analysis.metrics import samples_on_axis
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.session import Session

# Bits of the driver's mask, and nvidia-smi's fields for them. Idle, application clocks and sync
# boost are settings, not faults.
REASONS: dict[str, tuple[int, str]] = {
    "A power cap": (0x4, "sw_power_cap"),
    "A hardware slowdown": (0x8, "hw_slowdown"),
    "Heat (driver)": (0x20, "sw_thermal_slowdown"),
    "Heat (hardware)": (0x40, "hw_thermal_slowdown"),
    "The power brake": (0x80, "hw_power_brake_slowdown"),
}
_MASK = re.compile(
    r"clocks_(?:event|throttle)_reasons\.active$|DCGM_FI_DEV_CLOCKS?_(?:THROTTLE|EVENT)_REASONS$"
)
_FIELD = re.compile(r"clocks_(?:event|throttle)_reasons\.(\w+)$")
_CLOCK = ("clocks.current.sm", "clocks.sm", "DCGM_FI_DEV_SM_CLOCK", "SMCLK", "pclk")
_LOAD = ("utilization.gpu", "DCGM_FI_DEV_GPU_UTIL", "GPUTL", "sm")
_HEAT = ("temperature.gpu", "DCGM_FI_DEV_GPU_TEMP", "TMPTR", "gtemp")
_POWER, _LIMIT = (
    ("power.draw", "DCGM_FI_DEV_POWER_USAGE", "POWER"),
    (
        "power.limit",
        "enforced.power.limit",
        "DCGM_FI_DEV_POWER_MGMT_LIMIT",
    ),
)
LOADED_PCT = 50  # below it a low clock is thrift
DROPPED = 0.9  # of the highest clock seen under load
HOT_C = 80  # data-centre cards slow down from 83 to 90 degrees
NEAR_LIMIT = 0.95  # of the power limit

_COLUMNS = ["recording", "device", "reason", "samples", "share", "clock_loss"]


def clock_limits(session: Session) -> pd.DataFrame:
    """How often something held each device's clock down in the window of the figures.

    Returns
    -------
    DataFrame
        One row a device and reason, most frequent first: ``recording``, ``device``, ``reason``,
        ``samples``, ``share`` (0 to 1 of the samples that could say so), ``clock_loss`` (how far
        the SM clock then was below the highest sampled under load, 0 to 1; missing if it was not
        sampled). Empty where neither reasons nor clocks with temperature or power were sampled.
    """
    window = figure_window(session).window
    samples = samples_on_axis(session)
    samples = samples[samples["ts_ns"].between(window.start_ns, window.end_ns)]
    rows = []
    for (recording, device), of in samples.groupby(
        ["recording", "device"], observed=True, dropna=False
    ):
        wide = of.assign(counter=of["counter"].astype("str")).pivot_table(
            index="ts_ns", columns="counter", values="value", aggfunc="last"
        )
        clock = _first(wide, _CLOCK)
        said = _by_driver(wide)
        loss = None
        if clock is not None:
            loss = 1 - clock / max(float(clock.max()), 1.0)
        for reason, held in (said or _by_clock(wide, clock)).items():
            rows.append(
                {
                    "recording": recording,
                    "device": device,
                    "reason": reason,
                    "samples": len(held),
                    "share": float(held.mean()),
                    "clock_loss": np.nan
                    if loss is None
                    else float(loss.reindex(held.index)[held].mean()),
                }
            )
    found = pd.DataFrame(rows, columns=_COLUMNS)
    return found.sort_values("share", ascending=False, ignore_index=True, kind="stable")


def _by_driver(wide: pd.DataFrame) -> dict[str, pd.Series]:
    """Reasons the driver states, by its mask or field by field."""
    found: dict[str, pd.Series] = {}
    for name in wide.columns:
        field = _FIELD.match(name)
        values = wide[name].dropna()
        for reason, (bit, what) in REASONS.items():
            if _MASK.match(name):
                found[reason] = (values.astype("int64") & bit) > 0
            elif field and field[1] == what:
                found.setdefault(reason, values > 0)
    return found


def _by_clock(wide: pd.DataFrame, clock: pd.Series | None) -> dict[str, pd.Series]:
    """Without reasons: the clock falls under load while the device is hot or at its limit."""
    load, heat = _first(wide, _LOAD), _first(wide, _HEAT)
    power, limit = _first(wide, _POWER), _first(wide, _LIMIT)
    if clock is None or load is None:
        return {}
    loaded = load > LOADED_PCT
    low = loaded & (clock < DROPPED * clock[loaded].max())
    found = {}
    if heat is not None:
        found["Heat (by clock and temperature)"] = low & (heat >= HOT_C)
    if power is not None and limit is not None:
        found["A power cap (by clock and power)"] = low & (power >= NEAR_LIMIT * limit)
    return {reason: held[loaded] for reason, held in found.items() if loaded.any()}


def _first(wide: pd.DataFrame, names: tuple[str, ...]) -> pd.Series | None:
    return next((wide[name] for name in names if name in wide), None)
