"""Every figure of the simulated samples is the one the simulator wrote down beforehand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from maiprof_nb import Session, TimeWindow
from maiprof_nb.analysis.active_memory import memory_curve
from maiprof_nb.analysis.device_activity import breakdown, gaps
from maiprof_nb.analysis.gap_causes import gap_causes
from maiprof_nb.analysis.metrics import metric_summary
from maiprof_nb.analysis.phases import phases
from maiprof_nb.analysis.steps import figure_window, steps
from tests.shipped_samples import SCENARIOS, loaded, truth

pytestmark = [
    pytest.mark.parametrize("name", SCENARIOS),
    pytest.mark.xdist_group("simulated samples"),  # one process loads them, once
]


def test_steps(name):
    found, expected = steps(loaded(name)), truth(name)
    assert found["step"].tolist() == [step["step"] for step in expected["steps"]]
    offset = loaded(name).epoch_ns - expected["epoch_ns"]
    assert (found["ts_ns"] + offset).tolist() == [step["start_ns"] for step in expected["steps"]]
    window = figure_window(loaded(name)).window
    assert [window.start_ns + offset, window.end_ns + offset] == expected["window_ns"]


def test_idle_time_is_exact(name):
    (row,) = breakdown(loaded(name)).to_dict("records")
    device = truth(name)["device"]
    assert row["idle_ns"] == device["idle_ns"]
    assert row["window_ns"] == device["idle_ns"] + device["busy_ns"]
    assert row["busy_share"] == pytest.approx(1 - device["idle_share"], abs=1e-12)


def test_gaps(name):
    found, causes = gaps(loaded(name)), truth(name)["gaps"]["by_cause"].values()
    assert len(found) == sum(cause["count"] for cause in causes)
    assert found["dur_ns"].sum() == sum(cause["ns"] for cause in causes)
    offset = loaded(name).epoch_ns - truth(name)["epoch_ns"]
    long = found[found["dur_ns"] >= 100_000].sort_values("ts_ns")
    listed = truth(name)["gaps"]["from_100_us"]
    assert (long["ts_ns"] + offset).tolist() == [gap["start_ns"] for gap in listed]


def test_work_of_every_phase(name):
    found, expected = phases(loaded(name)).set_index("phase"), truth(name)
    assert found["kernels"].sum() == sum(expected["device"]["activities"].values())
    for phase, row in expected["phases"].items():
        assert found["device_ns"][phase] == row["device_ns"], phase


def test_kernels_of_every_phase(name):
    """The truth counts kernels only, without copies and memsets."""
    trimmed = []
    for recording in loaded(name).recordings:
        tables = dict(recording.tables)
        if recording.kind == "trace":
            work = tables["kernels"]
            copies = work["kind"].isin(["memcpy", "memset"])
            tables["kernels"] = work[~copies].reset_index(drop=True)
        trimmed.append(replace(recording, tables=tables))
    found = phases(Session(trimmed)).set_index("phase")["kernels"].to_dict()
    assert found == {phase: row["kernels"] for phase, row in truth(name)["phases"].items()}


def test_host_time_of_every_phase(name):
    """Within the marks of the steps, to 0.1 %; what the truth leaves nameless there is other."""
    session, expected = loaded(name), truth(name)
    marks = steps(session)
    window = TimeWindow(int(marks["ts_ns"].min()), int((marks["ts_ns"] + marks["dur_ns"]).max()))
    found = phases(session.select(window=window)).set_index("phase")["host_ns"].to_dict()
    named = {
        phase: sum(row["host_ns_per_step"])
        for phase, row in expected["phases"].items()
        if phase != "other"
    }
    in_steps = sum(step["end_ns"] - step["start_ns"] for step in expected["steps"])
    assert found == pytest.approx(named | {"other": in_steps - sum(named.values())}, rel=1e-3)
    assert in_steps - sum(named.values()) >= sum(expected["phases"]["other"]["host_ns_per_step"])


def test_occupancy(name):
    """Sampled twice a second, so near the truth: the samples at the window's edges reach out."""
    window = figure_window(loaded(name)).window
    found = metric_summary(loaded(name), window=window).set_index("counter")["mean"]
    metrics = truth(name)["metrics"]
    short = window.dur_ns < 5_000_000_000
    near = 0.05 if short else 0.02
    assert found["DCGM_FI_PROF_SM_OCCUPANCY"] == pytest.approx(metrics["sm_occupancy"], rel=near)
    assert found["DCGM_FI_PROF_SM_ACTIVE"] == pytest.approx(metrics["sm_active"], rel=near)
    tensor = found["DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"]
    assert tensor == pytest.approx(metrics["tensor_active"], rel=near)


def test_memory_used(name):
    found = metric_summary(loaded(name)).set_index("counter")["maximum"]
    assert found["memory.used"] == truth(name)["metrics"]["peak_memory_used_mib"]
    assert found["memory.total"] == truth(name)["metrics"]["memory_total_mib"]


def test_peak_allocated(name):
    """Exact but for what unsplit blocks have left over.

    The log states what was asked for. Of blocks freed before the end nothing says more, so the
    curve lies below the truth by their remainders.
    """
    curve = memory_curve(loaded(name))
    memory = truth(name)["memory"]
    peak = curve["allocated_bytes"].max()
    assert peak <= memory["peak_allocated_bytes"]
    assert peak == pytest.approx(memory["peak_allocated_bytes"], rel=5e-5)
    assert curve["reserved_bytes"].max() == memory["peak_reserved_bytes"]
    assert curve["allocated_bytes"].iloc[-1] == memory["end_allocated_bytes"]


def test_marked_as_simulated(name):
    assert loaded(name).simulated


def test_causes_of_long_gaps(name):
    """Idle time for input within 0.1 %, the rest of the same gaps is the rest of the truth."""
    found = gap_causes(loaded(name))
    long = found[found["dur_ns"] >= 100_000]
    shares = [gap["shares_ns"] for gap in truth(name)["gaps"]["from_100_us"]]
    known = sum(one.get("input/rows", 0) + one.get("input/sub-dataset", 0) for one in shares)
    assert long["input_ns"].sum() == pytest.approx(known, rel=1e-3)
    assert long["dur_ns"].sum() == sum(sum(one.values()) for one in shares)
