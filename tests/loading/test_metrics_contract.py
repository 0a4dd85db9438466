"""Every file of the corpus' metrics folder: recognised by one dialect, read to known counts."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from maiprof_nb.errors import LoadError
from maiprof_nb.loading import metric_formats, registry, sources
from maiprof_nb.recording import Recording

CORPUS = (
    Path(os.environ.get("MAIPROF_CORPUS", Path(__file__).parents[3] / "shared" / "corpus"))
    / "metrics"
)
REFUSED = {"jetson-codecarbon/total_summary.csv"}  # a summary without any time
NO_SAMPLES = {  # SOURCES.md: utilisation missing under MIG; used memory [N/A] under WDDM
    "smi-captures/h100-mig_load_pmon.txt",
    "smi-captures/h200-mig_load_pmon.txt",
    "smi-captures/rtx2080s-win_load_compute_apps.csv",
}
DIALECTS = {  # by folder or by the end of the name; the first that fits
    "amd-smi": "amd-smi",
    "dcgm-exporter": "dcgm-exporter",
    "dcgm-long": "dcgm-long",
    "dcgmi-dmon": "dcgmi-dmon",
    "dstat": "dstat",
    "gpu-z": "gpu-z",
    "/emissions.csv": "codecarbon",
    "jetson-codecarbon": "wide-csv",
    "node-power": "wide-csv",
    "smi-banner": "nvidia-smi-query",
    "smi-loop-4090": "nvidia-smi-query",
    "/energy_metrics.json": "tegrastats-json",
    "tegrastats": "tegrastats",
    "_dmon.txt": "nvidia-smi-dmon",
    "_pmon.txt": "nvidia-smi-pmon",
    "_q.txt": "nvidia-smi-report",
    "_apps.csv": "nvidia-smi-compute-apps",
    "query_gpu.csv": "nvidia-smi-query",
    "/testdata_query.csv": "nvidia-smi-query",
}
# Rows that hold samples. SOURCES.md counts non-blank lines; taken off are headers (one each, two
# for dmon, pmon and a dstat run, 12 for GPU-Z) and dstat's preamble (4 lines; 2 before the second
# run in dstat.csv).
ROWS = {
    "smi-loop-4090/gpu_log.csv": 2619,
    "dcgm-long/dmon.csv": 171,
    "dcgm-long/result.csv": 310,
    "node-power/power_log.csv": 6353,
    "node-power/power_log_node1.csv": 5,
    "tegrastats/tegrastats.log": 43,
    "tegrastats/tegrastats_old.log": 15,
    "tegrastats/energy_metrics.json": 43,  # the same log
    "gpu-z/GPU-Z Sensor Log.txt.gz": 1685 - 12,
    "jetson-codecarbon/gpu_log.csv": 10,
    "jetson-codecarbon/emissions.csv": 1,
    "dstat/dstat.csv": 121 - 4 - 2 - 2 - 2,
    "dstat/dstat_2.csv": 94 - 4 - 2,
    "amd-smi/gpu_metrics_head.csv": 12,
    "dcgmi-dmon/a100_8gpu_idle.txt": 8,
    "smi-captures/h100_load_compute_apps.csv": 3,
    "smi-captures/l40s_load_compute_apps.csv": 2,
    "smi-captures/testdata_query.csv": 2,
}
ALL = [p for p in sorted(CORPUS.glob("*/*")) if p.is_file()]
NO_CORPUS = [pytest.param(None, marks=pytest.mark.skip(reason=f"no corpus at {CORPUS}"))]


def _id(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def _params(paths):
    return [pytest.param(path, id=_id(path)) for path in paths] or NO_CORPUS


def _read(path: Path) -> Recording:
    return registry.read(sources.content(str(path))[0], str(path))


@pytest.fixture(params=_params([p for p in ALL if _id(p) not in REFUSED]))
def path(request) -> Path:
    return request.param


def test_one_dialect_says_mine(path):
    data = sources.content(str(path))[0]
    fits = (
        n for mark, n in DIALECTS.items() if mark in {path.parent.name, _id(path)[-len(mark) :]}
    )
    named = next(fits)
    assert [known.NAME for known in metric_formats.METRICS if known.sniff(data)] == [named]
    assert _read(path).format == named


def test_every_sample_has_time_and_number(path):
    recording = _read(path)
    table = recording.table("counters")
    assert recording.kind == "metrics"
    assert len(table) > 0 or _id(path) in NO_SAMPLES
    derived = (table["counter"] == "cpu.utilization").sum()
    assert recording.events == {"sample": len(table) - derived}
    assert np.isfinite(table["value"]).all()
    assert (table["ts_ns"] >= 0).all()
    assert table["event"].is_monotonic_increasing
    assert set(table["unit"].dropna()) <= {
        "%", "ratio", "W", "mW", "mJ", "kWh", "kg", "kg/s", "s", "us", "C", "MHz", "MiB", "GB",
        "B", "B/s", "KB/s", "1/s", "V", "mV", "RPM", "x",
    }  # fmt: skip


def test_a_series_has_one_sample_at_a_time(path):
    """Otherwise two quantities were mixed up under one name."""
    table = _read(path).table("counters")
    keys = ["event", "device", "counter"]
    assert not table.duplicated(keys).any()


@pytest.mark.parametrize("name", ROWS)
def test_rows_that_hold_samples(name):
    if not (CORPUS / name).exists():
        pytest.skip(f"no corpus at {CORPUS}")
    recording = _read(CORPUS / name)
    assert recording.table("counters")["event"].nunique() == ROWS[name]
    assert "rows-dropped" not in {note.code for note in recording.notes}


def test_what_is_no_course_over_time_is_refused():
    for name in REFUSED:
        if not (CORPUS / name).exists():
            pytest.skip(f"no corpus at {CORPUS}")
        with pytest.raises(LoadError, match="summary of energy and emissions"):
            _read(CORPUS / name)


def test_each_dialect_is_documented():
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")
    for known in metric_formats.METRICS:
        assert f"| `{known.NAME}` |" in page
