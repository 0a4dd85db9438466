"""Which sampled quantity tells best when a device was busy."""

from __future__ import annotations

import pandas as pd

from maiprof_nb.timebase import NS_PER_S

_BUSY = (  # share of time with any work: what a trace tells as well; NVML averages over 1 s at most
    "utilization.gpu",
    "dcgm_fi_dev_gpu_util",
    "gputl",
    "sm",
    "utilization / gpu",
    "gfx_activity",
    "gpu use",
    "gpu load",
    "gpu_usage",
    "gr3d_freq",
    "system.gpu.gpu",
    "gpu_util",
)
_AVERAGED = (  # averages over the whole time between two samples
    "dcgm_fi_prof_gr_engine_active",
    "gract",
    "dcgm_fi_prof_sm_active",
    "smact",
)
_POWER = (
    "dcgm_fi_dev_power_usage",
    "power",
    "powrd",
    "power.draw",
    "power.draw.instant",
    "power.draw.average",
    "pwr",
    "socket_power",
    "power_usage_instant",
    "gpu power readings / average power draw",
    "average graphics package power",
    "gpu chip power draw",
    "system.gpu.powerwatts",
    "gpu_power",
)
_ORDER = (*_AVERAGED[:2], *_BUSY, *_AVERAGED[2:], *_POWER)
_ABSURD = 1e9
_NVML_WINDOW_NS = NS_PER_S


def utilisation_series(counters: pd.DataFrame) -> tuple[str, pd.DataFrame]:
    """The best counter that varies, and its samples; empty where there is none.

    Graphics-engine activity and utilisation are what a trace knows as busy; SM activity is
    lower where kernels do not fill the device; power lags and is the last resort.
    """
    names = counters["counter"].cat.remove_unused_categories().cat.categories
    plain = {name: str(name).split(" {")[0].split(" [")[0].lower() for name in names}
    for wanted in _ORDER:
        for name in names:
            if plain[name] != wanted:
                continue
            # neither per cent nor watts: absurd numbers would drown the rest
            possible = counters["value"].abs() < _ABSURD
            rows = counters[(counters["counter"] == name) & possible]
            if rows["value"].max() > rows["value"].min():
                return str(name), rows
    return "", counters.iloc[:0]


def averaging_window_ns(counter: str, interval_ns: int) -> int:
    """Time that one sample speaks for, before its stamp."""
    if counter.split(" {", maxsplit=1)[0].lower() in _AVERAGED:
        return interval_ns
    return min(interval_ns, _NVML_WINDOW_NS)
