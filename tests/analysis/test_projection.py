"""Projected gains hold what the fixes really brought, where that is known."""

from __future__ import annotations

import pandas as pd
import pytest

import maiprof_nb
from maiprof_nb.analysis._changes import CHANGES
from maiprof_nb.analysis._matmul_kernels import half_precision_factors, peak_ratio
from maiprof_nb.analysis.projection import CHANGE_OF_RULE, project
from maiprof_nb.analysis.schedule import replay, schedule
from maiprof_nb.errors import NotAnswerableError, UsageError
from tests.analysis.test_schedule import loading, wait
from tests.shipped_samples import loaded, truth
from tests.tiny_traces import kernel, launch, nccl, operator, python, ranks, session, step

pytestmark = pytest.mark.xdist_group("simulated samples")

FIXES = [
    ("before", "workers", "input"),
    ("workers", "batch", "batch"),
    ("batch", "amp", "amp"),
    ("amp", "optimizer", "multi-tensor"),
]


@pytest.mark.parametrize(("before", "after", "change"), FIXES)
def test_what_each_fix_brought_lies_within_the_bounds(before, after, change):
    """Rows a second before and after, from the simulator's own schedule."""
    was, now = truth(before)["rows_per_s"], truth(after)["rows_per_s"]
    cores = truth("workers")["settings"]["num_worker_threads"]  # "the host's cores"
    found = project(loaded(before), change, cores=cores)
    low, middle, high = (was * factor for factor in found.speedups)
    assert low < now < high
    assert low < middle < high
    assert middle == pytest.approx(now, rel=0.05)


def test_what_all_fixes_brought_lies_within_the_bounds_of_all_together():
    was, now = truth("before")["rows_per_s"], truth("optimizer")["rows_per_s"]
    found = project(loaded("before"), [change for *_, change in FIXES], cores=16)
    low, _, high = (was * factor for factor in found.speedups)
    assert low < now < high


def test_more_workers_without_the_cores_are_a_stated_guess():
    found = project(loaded("before"), "input-bound")
    low, _, high = (truth("before")["rows_per_s"] * factor for factor in found.speedups)
    assert low < truth("workers")["rows_per_s"] < high
    assert any("cores are not in the recording" in reason for reason in found.reasons)
    assert any(reason.startswith("2 workers") for reason in found.reasons)


def test_real_job_with_and_without_workers(corpus):
    """ResNet-50 with num_workers 0 and 4: six steps each, on one machine."""
    (without,) = (corpus / "kineto").glob("kineto-resnet50-workers/num_workers_0.*")
    (with_workers,) = (corpus / "kineto").glob("kineto-resnet50-workers/num_workers_4.*")
    found = project(maiprof_nb.load(without), "input")
    after = replay(schedule(maiprof_nb.load(with_workers))).window_ns
    saved = 1 - after / found.baseline_ns
    assert found.shares[0] < saved < found.shares[2]


@pytest.mark.parametrize("change", ["input", "batch", "amp", "multi-tensor", "no-sync", "graphs"])
def test_bounds_are_in_order(change):
    found = project(loaded("workers"), change)
    assert found.floor_ns <= found.expected_ns <= found.ceiling_ns
    assert found.ceiling_ns <= found.baseline_ns
    assert found.steps == 48


@pytest.mark.parametrize("changes", [["input", "no-sync"], ["amp", "multi-tensor"]])
def test_together_never_saves_less_than_the_best_alone(changes):
    alone = [project(loaded("batch"), change).ceiling_ns for change in changes]
    together = project(loaded("batch"), changes)
    assert together.ceiling_ns >= max(alone) - 1
    assert together.changes == tuple(changes)


def test_the_same_time_is_saved_once():
    """Both name the loader; asking twice, or by two rules, changes nothing."""
    once = project(loaded("before"), "input")
    assert project(loaded("before"), ["input-bound", "few-data-workers"]) == once


def loop(*more: dict) -> object:
    """A step of 200 us: 100 of loading, a matrix product of 50 us, which is waited for."""
    return session(
        step(0, 1000, 200), loading(1000, 100), *more,
        operator("aten::mm", 1100, 20), launch(1, 1110),
        kernel(1120, 50, name="ampere_sgemm_128x128_nn", correlation=1), wait(1125, 50),
    )  # fmt: skip


def test_input_counted_by_hand():
    """One loader, no worker: four times as many leave 25 us, at least 2 + 1/2 times 50."""
    found = project(loop(), "input")
    assert found.baseline_ns == 200_000
    assert (found.floor_ns, found.expected_ns, found.ceiling_ns) == (50_000, 75_000, 100_000)
    four = project(loop(), "input", cores=2)
    assert four.expected_ns == 50_000


def test_busy_share_of_the_workers_counts():
    """Two workers, of which one works half of the 80 us: 75 % of that time can be divided."""
    workers = [
        python("table.py(1): decode", 1010, 80, tid=601),
        python("table.py(1): decode", 1010, 40, tid=602),
    ]
    found = project(loop(*workers), "input", cores=4)
    assert found.expected_ns == pytest.approx(80_000 * 0.75 * (1 - 2 / 4))
    assert found.ceiling_ns == 100_000


def test_batch_counted_by_hand():
    """At least, loading, kernel and unnamed host time double: 375 us for twice the rows.

    The 10 us up to the launch stay. Expected: the last 25 us stay, too, and 5 us of the kernel:
    345 us.
    """
    found = project(loop(), "batch")
    assert found.floor_ns == 200_000 - 375_000 // 2
    assert found.expected_ns == found.ceiling_ns == 200_000 - 345_000 // 2


def test_mixed_precision_counted_by_hand():
    """Unknown device: 2 to 8 times, expected 4; 50 us become 25, 12.5 and 6.25."""
    found = project(loop(), "amp")
    one_launch = 10_000  # the operator's host time up to its launch, once more for a conversion
    assert found.floor_ns == 25_000 - one_launch
    assert found.expected_ns == 37_500 - one_launch // 2
    assert found.ceiling_ns == 43_750


def test_scalar_read_counted_by_hand():
    """A read of 40 us becomes 3: 37 saved; waiting for the copy at the step's end costs 10."""
    made = session(
        step(0, 1000, 100), launch(1, 1010), kernel(1020, 50, correlation=1),
        operator("aten::item", 1030, 46), launch(2, 1032, name="cudaMemcpyAsync"),
        kernel(1071, 2, name="Memcpy DtoH", category="gpu_memcpy", correlation=2),
        wait(1035, 40, name="cudaStreamSynchronize"),
        step(1, 1100, 100), launch(3, 1110), kernel(1120, 60, correlation=3),
    )  # fmt: skip
    found = project(made, "no-sync")
    assert (found.floor_ns, found.expected_ns, found.ceiling_ns) == (27_000, 37_000, 37_000)


def test_graphs_counted_by_hand():
    """10 us of framework before the launch; those after it are hidden behind the wait."""
    found = project(loop(), "graphs")
    assert (found.floor_ns, found.expected_ns, found.ceiling_ns) == (5_000, 9_000, 10_000)


def test_overlap_counted_by_hand():
    """50 of 100 us are exposed; 10 us of computation have nothing beside them."""
    made = session(
        step(0, 1000, 140), launch(1, 1010), kernel(1020, 60, correlation=1),
        launch(2, 1020), nccl(1030, 100, correlation=2), wait(1025, 110),
    )  # fmt: skip
    found = project(made, "overlap-communication")
    assert (found.floor_ns, found.expected_ns, found.ceiling_ns) == (5_000, 10_000, 50_000)


def test_bounds_of_kernels_by_name_and_device():
    names = pd.Series(
        [
            "ampere_sgemm_128x128_nn",
            "ampere_fp16_s16816gemm_fp16_128x128",
            "cutlass_tf32_gemm",
            "add",
        ]
    )
    a100 = {"deviceProperties": [{"name": "NVIDIA A100", "computeMajor": 8, "computeMinor": 0}]}
    eligible, factors = half_precision_factors(names, a100)
    assert eligible.tolist() == [True, False, True, False]
    assert factors[0].tolist() == pytest.approx([2, 32**0.5, 16])
    assert factors[1].tolist() == factors[3].tolist() == [1, 1, 1]
    assert (
        peak_ratio({"deviceProperties": [{"name": "GP100", "computeMajor": 6, "computeMinor": 0}]})
        == 2
    )
    assert peak_ratio({}) == 8


def test_what_is_not_there_cannot_be_saved():
    bare = session(step(0, 1000, 50), launch(1, 1010), kernel(1020, 20, name="add", correlation=1))
    for change in ("input", "amp", "multi-tensor", "no-sync", "overlap-communication"):
        with pytest.raises(NotAnswerableError):
            project(bare, change)


def test_unknown_change():
    with pytest.raises(UsageError, match="no change magic"):
        project(loop(), "magic")


def test_every_rule_names_a_known_change():
    assert set(CHANGE_OF_RULE.values()) <= set(CHANGES)


def test_other_ranks_are_said_to_stay():
    rank = [step(0, 1000, 50), launch(1, 1010), kernel(1020, 20, correlation=1)]
    assert any(
        "One of 2 ranks" in reason for reason in project(ranks(rank, rank), "graphs").reasons
    )


def test_plain_data():
    said = project(loop(), "input").as_dict()
    assert (said["per"], said["expected_ns"], said["expected_share"]) == ("step", 75_000, 0.375)
