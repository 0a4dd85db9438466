"""Where the peak lies: by stacks of a hand-written log, and in three real training steps."""

from __future__ import annotations

import pytest

import maiprof_nb
from tests.conftest import CORPUS
from tests.findings.asking import finding
from tests.findings.tiny_memory import FORWARD, MIB, Job
from tests.shipped_samples import loaded
from tests.tiny_traces import kernel, session

RULE = "optimizer-peak"
STEP = "step (/torch/optim/adamw.py:99)"


def one_step(temporary: int) -> Job:
    job = Job()
    job.take(100 * MIB, "__init__ (/job/model.py:5)")
    for _ in range(20):
        job.give(job.take(90 * MIB, FORWARD))
    job.take(80 * MIB, STEP)
    job.give(job.take(temporary, STEP))
    return job


def test_temporaries_of_a_multi_tensor_step() -> None:
    found = finding(one_step(60 * MIB).session(), RULE)
    assert (found.outcome, found.severity) == ("found", "medium")
    assert found.title.startswith("The peak of 240 MiB lies in the optimizer's step")
    assert found.evidence[0]["temporaries_bytes"] == 60 * MIB
    assert found.evidence[0]["optimizer_state_bytes"] == 80 * MIB
    assert "fused=True" in found.advice


def test_state_that_stays() -> None:
    found = finding(one_step(11 * MIB).session(), RULE)  # 191 MiB against 190 in the forward pass
    assert found.outcome == "found"
    small = finding(one_step(MIB).session(), RULE)
    assert (small.outcome, small.title) == ("passed", "The peak of 190 MiB lies in phase forward.")


def test_without_a_phase_it_does_not_apply() -> None:
    job = Job()
    job.take(MIB, "main (/job/run.py:3)")
    assert finding(job.session(), RULE).outcome == "not-applicable"
    assert finding(session(kernel(1000, 5)), RULE).outcome == "not-applicable"


def test_the_sample_has_its_peak_in_the_backward_pass() -> None:
    assert "lies in phase backward" in finding(loaded("leak"), RULE).title


@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"no corpus at {CORPUS}: set MAIPROF_CORPUS")
def test_a_real_step_of_adamw() -> None:
    """cs336-kk: float32 weights of a 2.7B-like model; AdamW's two moments are twice as large."""
    path = CORPUS / "memory" / "cs336-kk" / "memory_ctx128_fullstep.pickle.gz"
    found = finding(maiprof_nb.load(path), RULE)
    assert (found.outcome, found.severity) == ("found", "low")
    row = found.evidence[0]
    assert row["optimizer_state_bytes"] == pytest.approx(2 * row["gradients_bytes"], rel=0.03)
    assert row["parameters_bytes"] == pytest.approx(row["gradients_bytes"], rel=0.01)
    assert row["activations_bytes"] < 0.01 * row["peak_bytes"]
