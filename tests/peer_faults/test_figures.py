"""Faults reported against other tools, with the right figure counted by hand.

Those that touch one analysis only are tested beside it; here are those that go through several.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import maiprof_nb
from maiprof_nb.analysis import breakdown, gap_causes, operator_ranking
from maiprof_nb.analysis.operator_ranking import operator_calls
from maiprof_nb.analysis.steps import steps
from maiprof_nb.findings import metrics_verdict
from tests.tiny_traces import (
    annotation,
    kernel,
    launch,
    nccl,
    operator,
    python,
    ranks,
    session,
    step,
)


def test_calls_that_cross_make_no_circle_hta_113() -> None:
    """HTA#113: a mis-ordered call stack made the graph cyclic."""
    made = session(operator("a", 0, 100), operator("b", 50, 100), operator("c", 120, 20))
    calls = operator_calls(made)
    assert calls["parent"].tolist() == [-1, -1, 1]  # b crosses a: nobody's child; c lies in b
    assert calls["self_ns"].tolist() == [100_000, 80_000, 20_000]


def test_modules_have_device_time_kineto_733() -> None:
    """kineto#733, #915: the module view showed no device time."""
    made = session(
        python("nn.Module: Linear_0", 0, 100),
        operator("aten::linear", 10, 50, **{"External id": 7}),
        launch(1, 20), kernel(200, 70, correlation=1, **{"External id": 7}),
    )  # fmt: skip
    ranking = operator_ranking(made, with_python=True).set_index("name")
    assert ranking.loc["nn.Module: Linear_0", "device_total_ns"] == 70_000
    assert ranking.loc["nn.Module: Linear_0", "device_self_ns"] == 0
    assert ranking.loc["aten::linear", "device_self_ns"] == 70_000


def test_every_rank_has_its_figures_kineto_782() -> None:
    """kineto#782: the distributed view was empty. Three ranks, so no 8 GPUs (TraceLens#309)."""
    made = ranks(*([kernel(0, 40), nccl(30, 30), kernel(90, 10)] for _ in range(3)))
    found = breakdown(made)
    assert found["rank"].tolist() == [0, 1, 2]
    assert found["compute_ns"].tolist() == [50_000] * 3
    assert found["exposed_communication_ns"].tolist() == [20_000] * 3
    assert found["overlap_share"].tolist() == [pytest.approx(1 / 3)] * 3


def test_a_step_ends_with_its_last_kernel_kineto_1022() -> None:
    """kineto#1022: the device's mark of a step ended with the first kernel of the backward pass."""
    mirrored = kernel(10, 5, category="gpu_user_annotation", name="ProfilerStep#1")
    made = session(
        step(1, 0, 100), mirrored,
        launch(1, 5), kernel(10, 5, correlation=1),
        launch(2, 90), kernel(140, 20, correlation=2),
    )  # fmt: skip
    (row,) = steps(made).to_dict("records")
    assert row["end_ns"] == 160_000


def test_holes_between_the_nodes_of_a_graph_are_no_idle_host_tracelens_728() -> None:
    """TraceLens#728: holes inside a replayed graph were chased as idle time of the host."""
    nodes = [kernel(100 + 10 * i, 8, correlation=1) for i in range(10)]
    made = session(launch(1, 50, 10, name="hipGraphLaunch"), operator("sample", 60, 140), *nodes)
    causes = gap_causes(made)
    assert len(causes) == 9
    assert set(causes["cause"]) == {"already launched"}


def test_a_straggler_shows_behind_equal_steps_traceml_252() -> None:
    """traceml#252, #253: an all-reduce makes steps equally long; own work tells who was late."""
    late = [step(1, 0, 100), kernel(0, 90), nccl(90, 10)]
    waits = [step(1, 0, 100), kernel(0, 40), nccl(40, 60)]
    found = breakdown(ranks(late, waits)).set_index("rank")
    assert found["window_ns"].nunique() == 1
    assert found["compute_ns"].to_dict() == {0: 90_000, 1: 40_000}
    assert found["exposed_communication_ns"].to_dict() == {0: 10_000, 1: 60_000}


def test_nvmls_utilisation_is_not_called_sm_utilisation_dcgm_182(tmp_path: Path) -> None:
    """DCGM#182: nvidia-smi's "utilisation" is not what people think it is."""
    rows = [f"2026/01/03 15:36:{i:02d}.000, 0, 100 %" for i in range(20)]
    log = tmp_path / "gpu.csv"
    log.write_text("\n".join(["timestamp, index, utilization.gpu [%]", *rows]) + "\n")
    verdict = metrics_verdict(maiprof_nb.load(log))
    assert "SM" not in verdict.figure.replace("how well the SMs are used", "")
    assert "some kernel was resident" in verdict.meaning


def test_the_last_step_counts_hta_76() -> None:
    """HTA#76: the last step was dropped without a word."""
    made = session(*(annotation(f"ProfilerStep#{i}", 100 * i, 100) for i in range(3)))
    assert steps(made)["step"].tolist() == [0, 1, 2]
