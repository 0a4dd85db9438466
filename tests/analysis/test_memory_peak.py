"""What was live at the peak, what it was for, and what grew."""

from __future__ import annotations

import pytest

import maiprof_nb
from maiprof_nb.analysis.memory_categories import memory_categories
from maiprof_nb.analysis.memory_diff import memory_diff
from maiprof_nb.analysis.memory_peak import memory_peak
from maiprof_nb.errors import UsageError
from maiprof_nb.session import Session
from tests.conftest import CORPUS
from tests.findings.tiny_memory import MIB, Job
from tests.shipped_samples import loaded, truth

SETUP, FORWARD = "_apply (/torch/nn/modules/module.py:900)", "forward (/job/model.py:10)"
GRADIENT = "torch::autograd::AccumulateGrad::apply (??:0)"
BACKWARD = "torch::autograd::generated::MmBackward0::apply (??:0)"
OPTIMIZER = "step (/torch/optim/adamw.py:99)"
CACHE = "update (/job/kv_cache.py:7)"


def one_step() -> Job:
    """Parameters, then an activation, a gradient, state and a temporary of the optimizer."""
    job = Job()
    job.before(7 * MIB)
    job.take(10 * MIB, SETUP)
    activation = job.take(20 * MIB, FORWARD)
    for _ in range(30):  # enough changes for the activation not to be passing
        job.give(job.take(MIB, FORWARD))
    job.give(job.take(5 * MIB, BACKWARD))
    job.take(10 * MIB, GRADIENT)
    job.give(activation)
    job.take(20 * MIB, OPTIMIZER)
    job.give(job.take(30 * MIB, OPTIMIZER))  # the peak: 7 + 10 + 10 + 20 + 30
    job.take(3 * MIB, CACHE)
    return job


@pytest.fixture(scope="module")
def step() -> Session:
    return one_step().session()


def test_the_peak(step: Session) -> None:
    peak = memory_peak(step)
    assert peak.peak_bytes == 77 * MIB
    assert peak.phase == "optimizer"
    assert peak.kept_bytes == 47 * MIB  # all but the temporary
    assert peak.unnamed_bytes == 0
    by = peak.by("category").set_index("category")["size_bytes"] // MIB
    assert by.to_dict() == {
        "temporaries": 30, "optimizer state": 20, "parameters": 10, "gradients": 10, "unknown": 7
    }  # fmt: skip
    phase = peak.by("phase").set_index("phase")["size_bytes"] // MIB
    assert (phase["optimizer"], phase["backward"]) == (50, 10)
    fate = peak.by("fate").set_index("fate")
    assert fate.loc["freed", "size_bytes"] == 30 * MIB
    assert fate.loc["freed", "freed_after_ns"] == 2_000  # requested, then completed
    assert peak.by("line").iloc[0]["line"] == OPTIMIZER


def test_every_category(step: Session) -> None:
    kinds = memory_categories(step)
    size = kinds.merge(step.table("allocations")[["allocation", "size_bytes"]], on="allocation")
    told = {(str(row.category), row.size_bytes // MIB) for row in size.itertuples()}
    assert told == {
        ("unknown", 7), ("parameters", 10), ("activations", 20), ("temporaries", 1),
        ("temporaries", 5), ("gradients", 10), ("optimizer state", 20), ("temporaries", 30),
        ("KV cache", 3),
    }  # fmt: skip
    sure = kinds["confidence"]
    assert sure[kinds["category"] == "unknown"].eq(0).all()
    assert sure[kinds["category"] != "unknown"].between(0.5, 0.9).all()


def test_the_peak_of_the_sample() -> None:
    known = truth("leak")["memory"]
    peak = memory_peak(loaded("leak"))
    assert peak.peak_bytes == known["peak_allocated_bytes"]
    assert peak.ts_ns + loaded("leak").epoch_ns - truth("leak")["epoch_ns"] == pytest.approx(
        known["peak_ts_ns"], abs=1_000
    )  # snapshots are written in microseconds
    assert peak.step == 39
    assert peak.live["size_bytes"].sum() == peak.peak_bytes
    leaked = peak.by("line").iloc[0]
    assert leaked["line"] == "forward (recommender/model.py:47)"


def test_two_moments(step: Session) -> None:
    diff = memory_diff(step).set_index("label")
    assert diff.loc[OPTIMIZER, "grown_bytes"] == 20 * MIB
    assert diff.loc["no stack recorded", "grown_bytes"] == 0
    assert (diff.loc[FORWARD, "after_bytes"] if FORWARD in diff.index else 0) == 0
    assert diff["grown_bytes"].is_monotonic_decreasing
    with pytest.raises(UsageError, match="outside the memory log"):
        memory_diff(step, after_ns=10**18)


def test_two_sessions(step: Session) -> None:
    job = one_step()
    job.take(9 * MIB, OPTIMIZER)
    job.take(4 * MIB, FORWARD)
    diff = memory_diff(step, job.session()).set_index("label")
    assert diff.loc[OPTIMIZER, ["before_bytes", "after_bytes", "grown_bytes"]].tolist() == [
        20 * MIB, 29 * MIB, 9 * MIB
    ]  # fmt: skip
    assert diff.loc[FORWARD, ["grown_bytes", "grown_blocks"]].tolist() == [4 * MIB, 1]
    assert diff["grown_bytes"].sum() == 13 * MIB


def test_a_real_peak_in_the_optimizer() -> None:
    path = CORPUS / "memory/cs336-kk/memory_ctx256_fullstep.pickle.gz"
    if not path.is_file():
        pytest.skip(f"no corpus at {CORPUS}: set MAIPROF_CORPUS")
    peak = memory_peak(maiprof_nb.load(path))
    assert peak.phase == "optimizer"
    by = peak.by("category").set_index("category")["size_bytes"]
    # AdamW: two tensors a parameter; gradients as large as the parameters
    assert by["optimizer state"] == pytest.approx(2 * by["gradients"], rel=0.01)
    assert by["parameters"] <= by["gradients"]
