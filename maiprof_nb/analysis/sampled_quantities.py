"""What samplers of many makers call the same quantity, and in which unit to compare it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import pandas as pd

_PERCENT = {"%": 1.0, "ratio": 100.0}
_GIB = {
    "B": 2.0**-30,
    "KiB": 2.0**-20,
    "MiB": 2.0**-10,
    "GiB": 1.0,
    "KB": 1e3 / 2**30,
    "MB": 1e6 / 2**30,
    "GB": 1e9 / 2**30,
}
_WATT = {"mW": 1e-3, "W": 1.0, "kW": 1e3}
_CELSIUS = {"C": 1.0}
_MHZ = {"kHz": 1e-3, "MHz": 1.0, "GHz": 1e3}
_GB_PER_S = {
    "B/s": 1e-9,
    "KB/s": 1e-6,
    "MB/s": 1e-3,
    "GB/s": 1.0,
    "KiB/s": 2**10 / 1e9,
    "MiB/s": 2**20 / 1e9,
    "GiB/s": 2**30 / 1e9,
}


@dataclass(frozen=True, slots=True)
class Quantity:
    """One thing that is measured.

    Parameters
    ----------
    unit : str
        The unit to compare it in.
    names : frozenset of str
        What samplers call it, in lower case.
    scales : Mapping of str to float
        Units it is reported in, with what one of them is in `unit`.
    """

    unit: str
    names: frozenset[str]
    scales: Mapping[str, float]


def _quantity(unit: str, scales: dict[str, float], *names: str) -> Quantity:
    return Quantity(unit, frozenset(name.lower() for name in names), MappingProxyType(scales))


_CLOCK_NAMES = ("clocks.sm", "clocks.current.sm", "DCGM_FI_DEV_SM_CLOCK", "pclk", "SMCLK")

QUANTITIES: Mapping[str, Quantity] = MappingProxyType(
    {
        "gpu utilisation": _quantity(
            "%", _PERCENT,
            "utilization.gpu", "DCGM_FI_DEV_GPU_UTIL", "sm", "GPUTL", "Utilization / GPU",
            "GPU use", "GPU use (%)", "gfx_activity", "GR3D_FREQ", "gpu_usage", "GPU Load",
            "system.gpu.gpu", "gpu_util",
        ),
        "engine activity": _quantity("%", _PERCENT, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "GRACT"),
        "sm activity": _quantity("%", _PERCENT, "DCGM_FI_PROF_SM_ACTIVE", "SMACT"),
        "sm occupancy": _quantity("%", _PERCENT, "DCGM_FI_PROF_SM_OCCUPANCY", "SMOCC"),
        "tensor activity": _quantity("%", _PERCENT, "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "TENSO"),
        "memory used": _quantity(
            "GiB", _GIB,
            "memory.used", "DCGM_FI_DEV_FB_USED", "fb", "FBUSD", "FB Memory Usage / Used",
            "VRAM Total Used Memory", "Memory Used (Dedicated)",
        ),
        "memory total": _quantity(
            "GiB", _GIB,
            "memory.total", "DCGM_FI_DEV_FB_TOTAL", "FBTTL", "FB Memory Usage / Total",
            "VRAM Total Memory",
        ),
        "memory free": _quantity(
            "GiB", _GIB, "memory.free", "DCGM_FI_DEV_FB_FREE", "FBFRE", "FB Memory Usage / Free"
        ),
        "power": _quantity(
            "W", _WATT,
            "power.draw", "power.draw.instant", "power.draw.average", "DCGM_FI_DEV_POWER_USAGE",
            "pwr", "POWER", "powrd", "power_usage_instant", "Watts", "socket_power",
            "VDD_GPU_SOC", "GPU Chip Power Draw", "system.gpu.powerWatts", "gpu_power",
            "gpu_power_w", "Average Graphics Package Power",
            "GPU Power Readings / Average Power Draw",
            "GPU Power Readings / Instantaneous Power Draw",
        ),
        "temperature": _quantity(
            "C", _CELSIUS,
            "temperature.gpu", "DCGM_FI_DEV_GPU_TEMP", "gtemp", "TMPTR", "hotspot",
            "temperature gpu", "GPU Temperature", "Temperature (Sensor edge)",
            "system.gpu.temp", "Temperature / GPU Current Temp",
        ),
        "sm clock": _quantity("MHz", _MHZ, *_CLOCK_NAMES, "Clocks / SM", "GPU Clock", "gfx_0_clk"),
        "pcie throughput": _quantity(
            "GB/s", _GB_PER_S,
            "DCGM_FI_PROF_PCIE_TX_BYTES", "DCGM_FI_PROF_PCIE_RX_BYTES", "PCITX", "PCIRX",
            "rxpci", "txpci", "PCI / Tx Throughput", "PCI / Rx Throughput",
        ),
        "nvlink throughput": _quantity(
            "GB/s", _GB_PER_S,
            "DCGM_FI_PROF_NVLINK_TX_BYTES", "DCGM_FI_PROF_NVLINK_RX_BYTES", "NVLTX", "NVLRX",
        ),
        "cpu utilisation": _quantity("%", _PERCENT, "cpu.utilization"),
    }
)  # fmt: skip


def sampled(frame: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """Rows of one quantity.

    Parameters
    ----------
    frame : DataFrame
        With ``counter`` and ``unit``: the table `counters`, or what
        `maiprof_nb.analysis.metrics` makes of it.
    quantity : str
        A key of `QUANTITIES`.

    Returns
    -------
    DataFrame
        The rows whose counter goes by one of the quantity's names, with ``scale`` behind:
        what one of their unit is in the quantity's. A row without unit counts as in the
        quantity's own. NaN where its unit measures something else.
    """
    known = QUANTITIES[quantity]
    used = [name for name in frame["counter"].unique() if plain_name(str(name)) in known.names]
    rows = frame[frame["counter"].isin(used).to_numpy()]
    units = rows["unit"].astype("object")
    scale = units.map(known.scales).where(units.notna(), 1.0).astype("float64")
    return rows.assign(scale=scale)


def plain_name(counter: str) -> str:
    """A counter's name in lower case, without the labels that Prometheus adds."""
    return counter.split(" {", 1)[0].lower()
