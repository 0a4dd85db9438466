"""Step by phase: who launched what, and sums that leave nothing out."""

from __future__ import annotations

from pathlib import Path

import pytest

import maiprof_nb
from maiprof_nb.analysis.job_states import job_states
from maiprof_nb.analysis.phase_steps import phase_steps
from maiprof_nb.analysis.phases import phases
from maiprof_nb.errors import NotAnswerableError, UsageError
from tests import tiny_traces as tiny
from tests.analysis.test_phases import two_steps

US = 1000


def test_two_steps_by_hand() -> None:
    """Each step: 40 loading, 20 forward, 30 backward, 50 optimizer, 5 zero_grad, else nothing.

    The optimizer's kernel of step 1 runs in step 2 and counts for step 1.
    """
    found = phase_steps(tiny.session(*two_steps())).set_index(["step", "phase"])
    for number in (1, 2):
        host = (found.loc[number]["host_ns"] / US).to_dict()
        assert host == {
            "data loading": 40, "forward": 20, "backward": 30, "optimizer": 50,
            "other": 5, "unrecorded": 55,
        }  # fmt: skip
        device = (found.loc[number]["device_ns"] / US).to_dict()
        assert device == {
            "data loading": 0, "forward": 10, "backward": 20, "optimizer": 15,
            "other": 0, "unrecorded": 0,
        }  # fmt: skip
        assert found.loc[number]["kernels"].sum() == 3
    assert found["peak_bytes"].isna().all()


def test_exposed_communication_counts_for_who_launched_it() -> None:
    """A collective of 40 us, half of it beside a kernel."""
    events = [
        tiny.step(1, 1000, 200),
        tiny.annotation("Optimizer.step#SGD.step", 1010, 50),
        tiny.launch(1, 1020), tiny.launch(2, 1030),
        tiny.nccl(1100, 40, correlation=1), tiny.kernel(1120, 40, correlation=2),
    ]  # fmt: skip
    found = phase_steps(tiny.session(*events)).set_index("phase")
    assert found["exposed_communication_ns"].to_dict()["optimizer"] == 20 * US
    assert found["exposed_communication_ns"].sum() == 20 * US


def test_memory_high_water_of_the_sample(samples: Path) -> None:
    """README of the samples: the peak is 47.13 % of 80 GB sampled, 35.5 GiB as allocated."""
    found = phase_steps(maiprof_nb.load(samples / "case_study" / "before"))
    peak = found.groupby("phase", observed=True)["peak_bytes"].max() / 2**30
    assert peak["backward"] == pytest.approx(35.5, abs=0.05)
    assert peak["data loading"] < 20


@pytest.mark.parametrize(
    "name", ["case_study/before", "cpu_job/recording"]
)  # the second has no device work
def test_sums_over_the_sample(samples: Path, name: str) -> None:
    session = maiprof_nb.load(samples / name)
    found = phase_steps(session)
    by = found.groupby(["recording", "step"]).agg(host=("host_ns", "sum"), dur=("dur_ns", "first"))
    assert (by["host"] == by["dur"]).all()
    assert (found["host_ns"] >= 0).all()
    whole = phases(session).set_index("phase")
    launched = found.groupby("phase", observed=True)[["device_ns", "kernels"]].sum()
    for phase in ("forward", "backward", "optimizer"):
        assert launched.loc[phase, "kernels"] == whole.loc[phase, "kernels"]
        assert launched.loc[phase, "device_ns"] == whole.loc[phase, "device_ns"]


def test_backward_on_autograds_thread_of_a_real_trace(corpus: Path) -> None:
    """The same backward time as over the whole window: autograd's, while the loop waits."""
    folder = corpus / "kineto" / "kineto-resnet50-workers"
    session = maiprof_nb.load(next(folder.glob("num_workers_0*")))
    found = phase_steps(session)
    whole = phases(session).set_index("phase")["host_ns"]
    spent = found.groupby("phase", observed=True)["host_ns"].sum()
    assert spent["backward"] == whole["backward"]
    assert spent["data loading"] == whole["data loading"]


def test_without_steps_the_reason_is_said() -> None:
    with pytest.raises(NotAnswerableError):
        phase_steps(tiny.session(tiny.operator("aten::mm", 1000, 10)))


def test_states_of_the_case_study(samples: Path) -> None:
    """README of the samples: rows/s 407 k and 918 k, idle 66.0 % and 23.4 %."""
    states = {name: maiprof_nb.load(samples / "case_study" / name) for name in ("before", "batch")}
    found = job_states(states, {"before": 393_216, "batch": 786_432}).set_index("state")
    assert found["rows_per_s"].round(-3).to_dict() == {"before": 407_000, "batch": 918_000}
    assert found["idle_share"].round(3).to_dict() == {"before": 0.660, "batch": 0.234}
    assert found.loc["before", "speed"] == 1
    with pytest.raises(UsageError):
        job_states(states, {"before": 393_216})
