"""Before and after: rows matched by name, per step, and told from noise."""

from __future__ import annotations

import numpy as np
import pytest

import maiprof_nb
from maiprof_nb.analysis._noise import adjusted, mann_whitney
from maiprof_nb.analysis.comparison import compare
from maiprof_nb.errors import UsageError
from tests.shipped_samples import loaded
from tests.tiny_traces import annotation, kernel, launch, operator, session, step


def job(durations: list[float], *, name: str = "aten::mm", inner: str | None = None) -> object:
    """One step of 100 us a duration, with an operator that long and a kernel of half of it."""
    events = []
    for i, dur in enumerate(durations):
        at = 1000 + 100 * i
        events += [
            step(i, at, 100), operator(name, at + 10, dur), launch(i + 1, at + 12, 1),
            kernel(at + 20, dur / 2, name="gemm", correlation=i + 1),
        ]  # fmt: skip
        if inner:
            events.append(operator(inner, at + 14, 2))
    return session(*events)


def rows(found) -> dict:
    return found.set_index("name").to_dict("index")


def test_figures_a_step_by_hand():
    found = rows(compare(job([40, 42, 44, 46]), job([20, 22, 24, 26], inner="aten::add")))
    mm = found["aten::mm"]
    assert (mm["calls_before"], mm["calls_after"]) == (1, 1)
    assert (mm["total_ns_before"], mm["total_ns_after"]) == (43_000, 23_000)
    assert (mm["self_ns_before"], mm["self_ns_after"]) == (42_000, 20_000)  # less the callees
    assert (mm["device_ns_before"], mm["device_ns_after"]) == (21_500, 11_500)
    assert (mm["delta_ns"], mm["ratio"]) == (-20_000, pytest.approx(23 / 43))
    assert found["aten::add"]["outcome"] == "new"
    gone = rows(compare(job([40] * 4, inner="aten::add"), job([40] * 4)))
    assert gone["aten::add"]["outcome"] == "gone"


def test_beyond_noise_or_not():
    before = job([40, 42, 44, 46, 41, 43, 45, 47])
    cheaper = rows(compare(before, job([20, 22, 24, 26, 21, 23, 25, 27])))["aten::mm"]
    assert cheaper["beyond_noise"]
    assert cheaper["outcome"] == "cheaper"
    same = rows(compare(before, job([47, 45, 43, 41, 46, 44, 42, 40.5])))["aten::mm"]
    assert same["delta_ns"] != 0
    assert same["outcome"] == "no difference beyond noise"
    dearer = rows(compare(job([20, 22, 24, 26, 21, 23, 25, 27]), before))["aten::mm"]
    assert dearer["outcome"] == "dearer"


def test_too_few_steps_to_say():
    found = rows(compare(job([40, 42, 44]), job([20, 22, 24])))["aten::mm"]
    assert found["outcome"] == "too few steps"
    assert np.isnan(found["p_value"])


def test_kernels_and_recursion():
    found = rows(compare(job([40, 42, 44, 46]), job([20, 22, 24, 26]), by="kernel"))
    assert found["gemm"]["device_ns_before"] == 21_500
    twice = session(step(0, 1000, 100), operator("f", 1010, 50), operator("g", 1012, 40),
                    operator("f", 1014, 30))  # fmt: skip
    assert rows(compare(twice, twice))["f"]["total_ns_before"] == 50_000  # not 80


def test_twice_the_rows_in_a_step():
    found = rows(compare(job([40] * 4), job([60] * 4), work_ratio=2))["aten::mm"]
    assert (found["total_ns_after"], found["calls_after"]) == (30_000, 0.5)


def test_calls_outside_the_steps_are_left_out():
    stray = session(
        step(0, 1000, 100), operator("aten::mm", 1010, 5), operator("aten::mm", 1200, 50)
    )
    assert rows(compare(stray, stray))["aten::mm"]["total_ns_before"] == 5_000


def test_without_steps_or_with_an_unknown_kind():
    bare = session(annotation("x", 1000, 10), operator("aten::mm", 1001, 5))
    with pytest.raises(UsageError, match="no steps"):
        compare(bare, bare)
    with pytest.raises(UsageError, match="comparison by colour"):
        compare(bare, bare, by="colour")


def test_rank_sum_by_hand():
    """All of one side below the other: U = 0 of mean 8, spread sqrt(12), less one half.

    z = 7.5 / 3.464 = 2.165, two-sided 0.0304 (tables of the normal distribution).
    """
    p = mann_whitney(np.array([[1.0, 2, 3, 4]]), np.array([[5.0, 6, 7, 8]]))
    assert p[0] == pytest.approx(0.0304, abs=1e-4)
    same = mann_whitney(np.array([[5.0] * 4]), np.array([[5.0] * 4]))
    assert same[0] == 1


def test_many_rows_are_allowed_for():
    """Benjamini and Hochberg of 0.01, 0.04, 0.03: times 3, 3/2 and 1, made monotone."""
    found = adjusted(np.array([0.01, 0.04, 0.03, np.nan]))
    assert found[:3] == pytest.approx([0.03, 0.04, 0.04])
    assert np.isnan(found[3])


@pytest.mark.xdist_group("simulated samples")
def test_multi_tensor_optimizer_on_the_samples():
    """The row the fix aimed at is cheaper; the rest of the model is as it was."""
    operators = rows(compare(loaded("amp"), loaded("optimizer")))
    assert operators["Optimizer.step#AdamW.step"]["outcome"] == "cheaper"
    assert operators["aten::lerp_"]["outcome"] == "gone"
    assert operators["aten::_foreach_lerp_"]["outcome"] == "new"
    phases = rows(compare(loaded("amp"), loaded("optimizer"), by="phase"))
    assert phases["optimizer"]["outcome"] == "cheaper"
    assert phases["optimizer"]["calls_before"] == 307
    for phase in ("forward", "backward", "data loading"):
        assert phases[phase]["outcome"] == "no difference beyond noise"


def test_real_job_with_and_without_workers(corpus):
    """Data loading is what four workers make cheaper: 69 ms a step before, 1.4 ms after."""
    pair = [
        next((corpus / "kineto").glob(f"kineto-resnet50-workers/num_workers_{n}.*")) for n in (0, 4)
    ]
    found = rows(compare(*(maiprof_nb.load(path) for path in pair), by="phase"))
    loading = found["data loading"]
    assert loading["outcome"] == "cheaper"
    assert loading["total_ns_before"] == pytest.approx(69e6, rel=0.02)
    assert loading["total_ns_after"] == pytest.approx(1.4e6, rel=0.05)
