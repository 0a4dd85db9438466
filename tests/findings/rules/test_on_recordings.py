"""Rules on the samples, whose truth is written down, and on real public traces."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import maiprof_nb
from maiprof_nb import Session
from maiprof_nb.analysis.phases import phases
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.analysis.synchronisations import synchronisations
from tests.conftest import CORPUS
from tests.findings.asking import finding
from tests.shipped_samples import loaded, truth

KINETO = CORPUS / "kineto"
needs_corpus = pytest.mark.skipif(
    not KINETO.is_dir(), reason=f"no corpus at {CORPUS}: set MAIPROF_CORPUS"
)


@cache
def real(pattern: str) -> Session:
    (path,) = KINETO.glob(pattern)
    return maiprof_nb.load(path)


def inside_loading(session: Session) -> float:
    """Host time in data loading over the window."""
    return float(phases(session).set_index("phase").loc["data loading", "host_share"])


def test_reload_of_the_sample() -> None:
    reads = truth("before")["sub_dataset_reads"]
    found = finding(loaded("before"), "periodic-reload")
    assert found.outcome == "found"
    assert found.evidence[0]["steps"] == reads
    assert found.evidence[0]["every_steps"] == reads[1] - reads[0] == 20
    epochs = truth("before")["settings"]["epochs_per_sub_dataset"]
    assert f"for input every {epochs} epochs (20 steps): steps 20, 40" in found.title
    # The gaps with the reads last longer than the others by the reads' own time.
    causes = truth("before")["gaps"]["by_cause"]
    each = causes["input/rows"]["ns"] / causes["input/rows"]["count"]
    assert found.cost_ns == pytest.approx(causes["input/sub-dataset"]["ns"] - 2 * each, rel=0.01)


def test_workers_of_the_sample() -> None:
    found = finding(loaded("before"), "few-data-workers")
    assert found.outcome == "found"
    (evidence,) = found.evidence
    assert evidence["workers"] == truth("before")["settings"]["num_worker_threads"] == 2
    assert evidence["enough"] > 2
    # Together with the reload it is all idle time for input, none of it twice.
    both = found.cost_ns + finding(loaded("before"), "periodic-reload").cost_ns
    assert both == finding(loaded("before"), "input-bound").cost_ns


def test_workers_of_the_sample_after_the_fix() -> None:
    assert truth("workers")["settings"]["num_worker_threads"] == 16
    assert finding(loaded("workers"), "few-data-workers").outcome == "passed"


def test_slow_steps_of_the_sample_are_the_reads() -> None:
    found = finding(loaded("before"), "slow-step")
    assert sorted(row["step"] for row in found.evidence) == truth("before")["sub_dataset_reads"]
    assert {(row["phase"], row["cause"]) for row in found.evidence} == {("data loading", "input")}


def test_waits_of_the_sample_cost_nothing() -> None:
    # It waits 4 times a step, but at the end of one that leaves nothing to launch.
    waits = synchronisations(loaded("before"))
    assert len(waits) == 4 * len(truth("before")["steps"])
    assert finding(loaded("before"), "hidden-sync").outcome == "passed"


@pytest.mark.parametrize(
    "rule", ["launch-bound", "small-kernels", "recompilation", "allocator-churn"]
)
def test_faults_the_sample_does_not_have(rule: str) -> None:
    assert finding(loaded("before"), rule).outcome == "passed"


@needs_corpus
def test_no_workers() -> None:
    session = real("kineto-resnet50-workers/num_workers_0*")
    assert inside_loading(session) == pytest.approx(0.39, abs=0.005)
    assert finding(session, "input-bound").outcome == "found"
    found = finding(session, "few-data-workers")
    assert found.outcome == "found"
    assert found.title.startswith("The training thread loads the data itself")


@needs_corpus
def test_four_workers() -> None:
    session = real("kineto-resnet50-workers/num_workers_4*")
    assert inside_loading(session) == pytest.approx(0.01, abs=0.005)
    assert finding(session, "input-bound").outcome == "passed"
    assert finding(session, "few-data-workers").outcome == "passed"


@needs_corpus
def test_bert_on_h100() -> None:
    session = real("tracelens-bert-small-h100/*")
    found = finding(session, "launch-bound")
    assert (found.outcome, found.severity) == ("found", "high")
    # The only wait of the forward pass: transformers tests a mask in an if-statement.
    wait = finding(session, "hidden-sync")
    assert wait.evidence[0]["operator"] == "aten::is_nonzero"
    assert "modeling_attn_mask_utils.py" in wait.evidence[0]["line"]
    assert finding(session, "profiler-overhead").outcome == "found"  # 1385 functions in 4.4 ms


@needs_corpus
def test_start_up_is_not_launch_bound() -> None:
    # Idle for 99.5 % of 12.9 s, in a few gaps of seconds; 98 pieces of work are launched.
    session = real("hta-alexnet/benchmark*")
    assert figure_window(session).window.dur_ns > 12e9
    assert finding(session, "launch-bound").outcome == "passed"


@needs_corpus
def test_waits_are_those_of_the_file() -> None:
    # Counted in the files: no runtime call waits but the profiler's own at the end.
    session = real("hta-df-index-resolver/*")
    calls = session.table("launches")["name"].astype("str")
    assert sorted(calls[calls.str.contains("Synchronize")]) == ["cudaDeviceSynchronize"]
    assert finding(session, "hidden-sync").title == "The host never waits for the device."
    # 60 in 6 steps, all within .item() and copies.
    waits = synchronisations(real("hta-trace-diff/control*"))
    assert len(waits) == 60
    assert waits["operator"].notna().all()


@needs_corpus
def test_a_busy_device_passes() -> None:
    session = real("hta-ns-resolution/*")  # busy 98.5 %
    for rule in ("launch-bound", "small-kernels", "hidden-sync", "slow-step"):
        assert finding(session, rule).outcome == "passed"


@needs_corpus
def test_memory_goes_to_the_driver_and_back() -> None:
    session = maiprof_nb.load(Path(KINETO / "torchrec-sleep-straggler-4ranks"))
    assert finding(session, "allocator-churn").outcome == "found"
