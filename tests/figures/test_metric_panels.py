"""Counters of many makers in one set of panels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import maiprof_nb
from maiprof_nb.analysis.metrics import metric_series
from maiprof_nb.timebase import NS_PER_S
from maiprof_widgets.figures.metrics import metric_panels
from maiprof_widgets.figures.panels import Panel, points, time_scale

SECONDS = time_scale(60 * NS_PER_S)
Row = tuple[str | None, str, str | None, list[float]]


def counters(*rows: Row) -> pd.DataFrame:
    parts = [
        pd.DataFrame(
            {
                "recording": 0,
                "device": device,
                "counter": counter,
                "unit": unit,
                "ts_ns": np.arange(len(values)) * NS_PER_S,
                "value": values,
            }
        )
        for device, counter, unit, values in rows
    ]
    return pd.concat(parts, ignore_index=True)


def panels(*rows: Row) -> dict[tuple[str, str], Panel]:
    table = counters(*rows)
    return {(panel.title.split(":")[0], panel.unit): panel for panel in metric_panels(table, table)}


def values(panel: Panel) -> dict[str, list[float]]:
    return {curve.name: np.asarray(points(curve, SECONDS)["y"]).tolist() for curve in panel.curves}


def test_curves_of_a_panel_share_its_unit() -> None:
    made = panels(
        ("0", "VDD_GPU_SOC", "mW", [4500.0]),
        ("1", "socket_power", "W", [700.0]),
        ("0", "VRAM Total Used Memory", "B", [2.0**32]),
        ("1", "fb", "MiB", [1536.0]),
    )
    assert list(made) == [("GPU memory used", "GiB"), ("Power", "W")]
    power, memory = made["Power", "W"], made["GPU memory used", "GiB"]
    assert sorted(values(power).values()) == [[4.5], [700.0]]
    assert sorted(values(memory).values()) == [[1.5], [4.0]]


def test_one_counter_in_two_units_is_two_curves() -> None:
    made = panels(("0", "SMACT", "ratio", [0.5]), ("1", "SMACT", "%", [50.0]))
    (panel,) = made.values()
    assert values(panel) == {"GPU 0": [50.0], "GPU 1": [50.0]}


def test_what_cannot_be_converted_stands_alone() -> None:
    made = panels(("0", "power.draw", "W", [100.0]), ("0", "gpu_power", "J", [3.0]))
    assert set(made) == {("Power", "W"), ("Power", "J")}


def test_measured_cpu_utilisation_has_a_panel() -> None:
    made = panels((None, "cpu.utilization", "%", [12.0, 14.0]))
    (panel,) = made.values()
    assert panel.curves[0].name == "host"
    assert panel.bounds == (0, 105)


def test_reasons_of_a_slow_clock_are_read_from_nvmls_bits() -> None:
    """0x4 software power cap, 0x40 hardware thermal slowdown, 0x1 idle, by NVML's reference."""
    made = panels(("0", "clocks_event_reasons.active", None, [1.0, 0x44, 0x4, 0.0]))
    panel = made["Clock held down (throttling), by reason", ""]
    assert values(panel) == {
        "GPU 0: software power cap": [0, 1, 1, 0],
        "GPU 0: hardware thermal slowdown": [0, 1, 0, 0],
    }


def test_a_clock_that_nothing_held_down_says_so() -> None:
    made = panels(("0", "clocks_event_reasons.sw_power_cap", None, [0.0, 0.0]))
    (panel,) = made.values()
    assert panel.curves == ()
    assert "neither power nor heat" in panel.empty


@pytest.mark.parametrize(
    ("file", "titles"),
    [
        ("amd-smi/gpu_metrics_head.csv", {"GPU utilisation", "Power", "Temperature"}),
        ("tegrastats/tegrastats.log", {"GPU utilisation", "CPU utilisation", "Power"}),
        ("gpu-z/GPU-Z Sensor Log.txt.gz", {"GPU utilisation", "GPU memory used", "Temperature"}),
        ("dstat/dstat.csv", {"CPU utilisation"}),
        ("smi-captures/rtx2080s-win_load_q.txt", {"PCIe throughput", "GPU memory used"}),
        ("dcgm-long/dmon.csv", {"Power", "Clock held down (throttling), by reason"}),
    ],
)
def test_real_logs_of_every_maker_fill_panels(corpus: Path, file: str, titles: set[str]) -> None:
    path = corpus / "metrics" / file
    if not path.exists():
        pytest.skip(f"{file} is not in the corpus")
    session = maiprof_nb.load(path)
    made = metric_panels(metric_series(session), session.table("counters"))
    found = {panel.title.split(":")[0] for panel in made}
    assert titles <= found
    assert len({panel.title for panel in made}) == len(made)
