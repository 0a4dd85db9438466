"""What was live at the peak, what it was for, and what grew."""

from __future__ import annotations

from pathlib import Path

import pytest

import maiprof_nb
from maiprof_nb.analysis._memory_origins import OUTSIDE, module_in
from maiprof_nb.analysis.memory_categories import memory_categories
from maiprof_nb.analysis.memory_diff import memory_diff
from maiprof_nb.analysis.memory_drain import floor_of, memory_drain
from maiprof_nb.analysis.memory_flame import memory_flame
from maiprof_nb.analysis.memory_peak import memory_peak
from maiprof_nb.errors import UsageError
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow
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


def test_the_peak_of_a_window_and_what_is_live_at_a_moment(step: Session) -> None:
    """By hand from `one_step`: 7 before, then 10 and 20; small ones come and go above 37."""
    early = memory_peak(step, window=TimeWindow(0, 3_000))
    assert early.peak_bytes == 38 * MIB
    first = memory_peak(step, at_ns=0)
    assert first.live["size_bytes"].tolist() == [10 * MIB, 7 * MIB]
    with pytest.raises(UsageError, match="does not cover"):
        memory_peak(step, at_ns=10**18)
    with pytest.raises(UsageError, match="does not cover"):
        memory_peak(step, window=TimeWindow(10**18, 10**18 + 1))


def test_modules_by_the_stack_name_file_and_call() -> None:
    """The innermost `forward` of the user's own, and the line that called the module."""
    inside = [
        "at::empty_cuda (??:0)",
        "linear (/env/site-packages/torch/nn/functional.py:10)",
        "forward (/env/site-packages/torch/nn/modules/linear.py:125)",
        "_call_impl (/env/site-packages/torch/nn/modules/module.py:1790)",
        "forward (/job/nets/block.py:39)",
        "_call_impl (/env/site-packages/torch/nn/modules/module.py:1790)",
        "_PyEval_EvalFrameDefault (??:0)",
        "_wrapped_call_impl (/env/site-packages/torch/nn/modules/module.py:1779)",
        "forward (/job/nets/model.py:245)",
        "<module> (/job/train.py:9)",
    ]
    assert module_in(inside) == "nets/block.py, called in forward (nets/model.py:245)"
    assert module_in(inside[:4]) == "modules/linear.py"
    assert module_in(["step (/job/optim.py:3)"]) is None
    assert module_in([]) is None


def test_modules_of_a_real_trace_are_those_it_names(samples: Path) -> None:
    """As the trace's own `nn.Module:` frames enclose each allocation, searched one by one."""
    session = maiprof_nb.load(samples / "cpu_job" / "recording")
    live = memory_peak(session).live
    calls = session.table("python_calls")
    calls = calls[calls["name"].astype(str).str.startswith("nn.Module: ")]
    end = calls["ts_ns"] + calls["dur_ns"]
    for row in live[~live["before_log"]].itertuples():
        around = calls[(calls["ts_ns"] <= row.ts_ns) & (end >= row.ts_ns)]
        innermost = str(around.loc[around["ts_ns"].idxmax(), "name"]) if len(around) else OUTSIDE
        assert row.module == innermost.removeprefix("nn.Module: ")


def test_the_drain_says_what_is_left_after_each_free(step: Session) -> None:
    peak = memory_peak(step)
    drain = memory_drain(peak)
    left = drain.groupby("after_ns")["size_bytes"].sum() // MIB
    # the temporary is requested free, then freed; the log ends with a block of the cache
    assert left.loc[[0, 2_000]].tolist() == [77, 47]
    assert left.index[-1] == peak.log.span.end_ns - peak.ts_ns
    last = drain[drain["after_ns"] == drain["after_ns"].max()].set_index("category")["size_bytes"]
    assert last["temporaries"] == 0
    assert last.sum() == peak.kept_bytes
    assert floor_of(step, peak).size_bytes == 47 * MIB


def test_the_drain_is_bounded_and_true_at_its_moments() -> None:
    """Against the sizes of the allocations whose end lies after each moment, added up."""
    peak = memory_peak(loaded("before"))
    drain = memory_drain(peak, moments=20)
    sums = drain.groupby("after_ns")["size_bytes"].sum()
    assert len(sums) <= 20
    end = peak.live["end_ns"].astype("Float64").fillna(float("inf"))
    for after_ns, size_bytes in sums.items():
        alive = (end > peak.ts_ns + after_ns).to_numpy(bool)
        assert size_bytes == peak.live["size_bytes"][alive].sum()


@pytest.mark.parametrize("name", ["leak", "cpu_job/recording", "case_study/before"])
def test_the_flame_sums_to_what_was_live(name: str, samples: Path) -> None:
    peak = memory_peak(maiprof_nb.load(samples / name))
    flame = memory_flame(peak)
    assert flame.loc[0, ["parent", "size_bytes", "blocks"]].tolist() == [
        -1, peak.peak_bytes, len(peak.live)
    ]  # fmt: skip
    parts = flame["self_bytes"] + flame["pruned_bytes"]
    callees = flame[flame["parent"] >= 0].groupby("parent")["size_bytes"].sum()
    assert (parts + callees.reindex(flame.index, fill_value=0)).tolist() == flame[
        "size_bytes"
    ].tolist()
    assert (flame["parent"] < flame["node"]).all()
    # every node's bytes are those of the stacks that go through it
    whole = memory_flame(peak, min_share=0, max_nodes=10**6)
    assert whole["self_bytes"].sum() == peak.peak_bytes
    assert whole["pruned_bytes"].eq(0).all()


def test_the_flame_of_the_leak_leads_to_its_line() -> None:
    flame = memory_flame(memory_peak(loaded("leak")))
    own = flame[flame["own"]]
    most = own[own["size_bytes"] > 0.8 * flame.loc[0, "size_bytes"]]
    assert most.loc[most["depth"].idxmax(), "name"] == "recommender/model.py(47): forward"
    native = flame[(flame["kind"] == "native") & (flame["depth"] > 0)]
    assert not native["name"].str.contains("Allocator|unwind").any()


def test_growth_by_line_and_category(step: Session) -> None:
    lines = memory_diff(step, by="line").set_index("label")
    assert lines.loc[OPTIMIZER, ["grown_bytes", "grown_blocks"]].tolist() == [20 * MIB, 1]
    kinds = memory_diff(step, by="category").set_index("category")["grown_bytes"] // MIB
    assert kinds.to_dict() == {
        "optimizer state": 20, "parameters": 10, "gradients": 10, "KV cache": 3, "unknown": 0
    }  # fmt: skip
    with pytest.raises(UsageError, match="cannot be compared by colour"):
        memory_diff(step, by="colour")
