"""Why the GPU's clock was held down -> one panel."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from maiprof_widgets import escaping
from maiprof_widgets.figures.panels import Curve, Panel
from maiprof_widgets.figures.utilisation import device_name

_BITS = {  # of NVML's clocksEventReasons; idle and set clocks are no fault
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}
_MASKS = {
    "clocks_event_reasons.active",
    "clocks_throttle_reasons.active",
    "current_clock_throttle_reasons",
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS",
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
}
_ONE = re.compile(
    r"(?:clocks_(?:event|throttle)_reasons\.|throttle_reason_)"
    r"(?P<reason>sw_power_cap|hw_slowdown|sync_boost|sw_thermal_slowdown|hw_thermal_slowdown|"
    r"hw_power_brake_slowdown)"
)
_WORDS = {
    "sw_power_cap": _BITS[0x4],
    "hw_slowdown": _BITS[0x8],
    "sync_boost": _BITS[0x10],
    "sw_thermal_slowdown": _BITS[0x20],
    "hw_thermal_slowdown": _BITS[0x40],
    "hw_power_brake_slowdown": _BITS[0x80],
}


def clock_limits_panel(series: pd.DataFrame, everything: pd.DataFrame) -> Panel | None:
    """A curve a device and reason that held its clock down at any sample; None if not sampled.

    Parameters
    ----------
    series : DataFrame
        Rows of `maiprof_nb.analysis.metrics.metric_series` for the window shown.
    everything : DataFrame
        The whole `counters` table.
    """
    states = _states(everything)
    if states is None:
        return None
    active = states[states["value"] > 0][["device", "reason"]].drop_duplicates()
    shown = _states(series)
    curves = []
    for device, reason in active.itertuples(index=False):
        rows = shown if shown is not None else states.iloc[:0]
        same = rows["device"].isna() if pd.isna(device) else rows["device"] == device
        rows = rows.loc[same & (rows["reason"] == reason), ["ts_ns", "value"]]
        rows = rows.groupby("ts_ns", as_index=False).max()  # sampled under two names
        curves.append(
            Curve(
                f"{device_name(device)}: {escaping.text(reason)}",
                rows["ts_ns"].to_numpy(),
                rows["value"].to_numpy(np.float64),
                "area",
            )
        )
    return Panel(
        "Clock held down (throttling), by reason",
        "",
        tuple(curves),
        height_px=60,
        bounds=(0, 1.2),
        ticks={0.0: "no", 1.0: "yes"},
        empty="at no sample: neither power nor heat held the clock down",
    )


def _states(samples: pd.DataFrame) -> pd.DataFrame | None:
    """``device``, ``ts_ns``, ``reason``, ``value`` (0 or 1); None where none was sampled."""
    found = []
    for name in samples["counter"].unique():
        plain = str(name).split(" {", 1)[0]
        single = _ONE.fullmatch(plain)
        if single is None and plain not in _MASKS:
            continue
        rows = samples.loc[(samples["counter"] == name).to_numpy(), ["device", "ts_ns", "value"]]
        rows = rows.dropna(subset="value")
        values = rows["value"].to_numpy(np.float64)
        if single is not None:
            found.append(rows.assign(reason=_WORDS[single["reason"]], value=values > 0))
            continue
        mask = np.where(np.abs(values) < 2**53, values, 0).astype(np.int64)
        found += [rows.assign(reason=words, value=(mask & bit) > 0) for bit, words in _BITS.items()]
    return pd.concat(found).astype({"value": "int64"}) if found else None
