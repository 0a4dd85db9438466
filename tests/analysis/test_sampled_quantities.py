"""Which counters are the same quantity, and in which unit."""

from __future__ import annotations

import pandas as pd
import pytest

from maiprof_nb.analysis.sampled_quantities import QUANTITIES, plain_name, sampled


def counters(*rows: tuple[str, str | None, float]) -> pd.DataFrame:
    names, units, values = zip(*rows, strict=True)
    return pd.DataFrame(
        {"counter": pd.Categorical(names), "unit": pd.Categorical(units), "value": values}
    )


@pytest.mark.parametrize(
    ("quantity", "counter", "unit", "value", "right"),
    [
        ("power", "VDD_GPU_SOC", "mW", 4500.0, 4.5),
        ("power", "vdd_gpu_soc", "mW", 4500.0, 4.5),  # the same rail in tegrastats' JSON
        ("power", "socket_power", "W", 700.0, 700.0),
        ("memory used", "VRAM Total Used Memory", "B", 2.0**31, 2.0),
        ("memory used", "fb", "MiB", 512.0, 0.5),
        ("gpu utilisation", "DCGM_FI_DEV_GPU_UTIL {instance=a}", "%", 40.0, 40.0),
        ("sm activity", "SMACT", "ratio", 0.25, 25.0),
        ("pcie throughput", "PCI / Tx Throughput", "KB/s", 2_000_000.0, 2.0),
        ("temperature", "hotspot", None, 61.0, 61.0),
    ],
)
def test_samples_of_every_maker_come_in_one_unit(
    quantity: str, counter: str, unit: str | None, value: float, right: float
) -> None:
    """Right values by hand: what the unit's prefix says."""
    found = sampled(counters((counter, unit, value), ("other", "%", 1.0)), quantity)
    assert (found["value"] * found["scale"]).tolist() == pytest.approx([right])


def test_a_unit_of_something_else_has_no_scale() -> None:
    found = sampled(counters(("gpu_power", "J", 3.0)), "power")
    assert found["scale"].isna().tolist() == [True]


def test_a_process_is_not_its_device() -> None:
    """``sm [pid 7 python]`` is one process' share, ``sm`` the device's."""
    assert sampled(counters(("sm [pid 7 python]", "%", 5.0)), "gpu utilisation").empty


def test_no_name_is_of_two_quantities() -> None:
    names = [name for quantity in QUANTITIES.values() for name in quantity.names]
    assert len(names) == len(set(names))
    assert all(plain_name(name) == name for name in names)
