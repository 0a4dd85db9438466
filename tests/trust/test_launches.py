"""Launches and device work that miss each other; right counts are counted by hand here."""

from __future__ import annotations

import pytest

from maiprof_nb.trust import trust
from tests import tiny_traces as tiny
from tests.trust.asking import failing, outcome

STARTING = (  # HTA#61: cudaLaunchKernelExC was not known as a launch
    "cudaLaunchKernel", "cudaLaunchKernelExC", "cudaLaunchKernelExC_v11060", "cudaGraphLaunch",
    "cudaLaunchCooperativeKernel", "cuLaunchKernel", "cuLaunchKernelEx", "cudaMemcpyAsync",
    "hipLaunchKernel", "hipExtModuleLaunchKernel", "hipModuleLaunchKernel", "hipGraphLaunch",
    "hipMemcpyWithStream", "hipExtLaunchKernel", "hipMemcpyAsync", "cuMemcpyHtoDAsync_v2",
)  # fmt: skip
OTHERS = (
    "cudaStreamSynchronize", "cudaMalloc", "cudaEventRecord", "cudaLaunchHostFunc",
    "cudaPeekAtLastError", "cudaMemsetAsync", "cudaGetFuncBySymbol", "cudaFuncGetAttributes",
)  # fmt: skip


def pairs(count: int, *, lost: range = range(0), unlaunched: range = range(0)):
    """So many launches with a kernel each, without the kernels or launches of some."""
    launches = [tiny.launch(i, 1000 + 10 * i) for i in range(count) if i not in unlaunched]
    kernels = [tiny.kernel(1005 + 10 * i, 8, correlation=i) for i in range(count) if i not in lost]
    return [*launches, *kernels]


def test_all_matched_is_healthy():
    assert not failing(tiny.session(*pairs(100)))


def test_launches_without_kernels_above_one_percent():
    found = outcome(tiny.session(*pairs(100, lost=range(50, 52))), "launches-without-work")
    assert (found["outcome"], found["count"], found["share"]) == ("failed", 2, 0.02)
    assert "2 cudaLaunchKernel" in found["reason"]
    found = outcome(tiny.session(*pairs(100, lost=range(50, 51))), "launches-without-work")
    assert (found["outcome"], found["count"]) == ("passed", 1)


@pytest.mark.parametrize("name", STARTING)
def test_calls_that_must_start_work(name):
    session = tiny.session(*pairs(9), tiny.launch(99, 1500, name=name))
    assert outcome(session, "launches-without-work")["count"] == 1, "HTA#61"


@pytest.mark.parametrize("name", OTHERS)
def test_calls_that_need_not_start_work(name):
    session = tiny.session(*pairs(9), tiny.launch(99, 1500, name=name))
    assert outcome(session, "launches-without-work")["count"] == 0


def test_a_graph_launch_has_many_kernels_on_one_correlation():
    graph = tiny.launch(500, 3000, name="cudaGraphLaunch")
    kernels = [tiny.kernel(3010 + 10 * i, 8, correlation=500) for i in range(40)]
    assert not failing(tiny.session(*pairs(5), graph, *kernels))


def test_what_a_capture_records_is_not_launched():
    """Kernels inside a stream capture do not run; the graph's launch later does."""
    begin = tiny.launch(800, 2990, name="hipStreamBeginCapture")
    inside = [tiny.launch(900 + i, 3000 + i, 0.5, name="hipLaunchKernel") for i in range(50)]
    end = tiny.launch(801, 3100, name="hipStreamEndCapture")
    assert not failing(tiny.session(*pairs(5), begin, *inside, end))


def test_kernels_without_launches_above_one_percent():
    session = tiny.session(*pairs(100, unlaunched=range(3)), tiny.memcpy(900, 5, correlation=7777))
    found = outcome(session, "work-without-launch")
    assert (found["outcome"], found["count"]) == ("failed", 4)
    assert (
        "4 of 101 pieces of device work have no launch in the trace (3 kernels among them"
        in found["reason"]
    )
    assert trust(session, "operator-device-times").state == "not answerable"  # no operators either
    assert trust(session, "phases").state == "reduced"
    assert trust(session, "gpu-utilisation") == trust(tiny.session(*pairs(3)), "gpu-utilisation")


def test_no_device_work_at_all_is_no_idle_gpu():
    """As the zoology trace: launches, not one kernel."""
    session = tiny.session(*[tiny.launch(i, 1000 + i) for i in range(7)])
    found = outcome(session, "no-device-work")
    assert (found["outcome"], found["count"]) == ("failed", 7)
    answer = trust(session, "gpu-utilisation")
    assert answer.state == "not answerable"
    assert "does not say that the GPU was idle" in answer.reasons[0]
    assert "ProfilerActivity.CUDA" in answer.reasons[0]


def test_cpu_only_is_no_fault_but_no_answer():
    session = tiny.session(tiny.operator("aten::add", 1000, 10))
    assert not failing(session)
    assert outcome(session, "no-device-work")["outcome"] == "not-applicable"
    assert trust(session, "gaps").state == "not answerable"
    assert trust(session, "operator-times").state == "ok"


def test_work_lost_at_the_start():
    """pytorch#192021, kineto#996: the first kernels of a session are dropped."""
    found = outcome(tiny.session(*pairs(200, lost=range(12))), "work-lost-at-start")
    assert (found["outcome"], found["count"]) == ("failed", 12)
    assert "over 120 µs" in found["reason"]  # launches 10 us apart, 0 to 12


def test_work_lost_elsewhere_is_not_lost_at_the_start():
    session = tiny.session(*pairs(200, lost=range(100, 112)))
    assert outcome(session, "work-lost-at-start")["outcome"] == "passed"
    assert outcome(session, "launches-without-work")["outcome"] == "failed"


def test_work_that_nothing_ties_to_the_host():
    kernels = [tiny.kernel(1000 + 10 * i, 8) for i in range(4)]  # neither correlation nor id
    session = tiny.session(tiny.operator("aten::mm", 990, 5), tiny.launch(1, 992), *kernels)
    assert outcome(session, "no-links")["outcome"] == "failed"
    assert trust(session, "operator-device-times").state == "not answerable"


def test_external_ids_are_a_tie_too():
    operator = tiny.operator("aten::mm", 990, 5, **{"External id": 3})
    kernel = tiny.kernel(1000, 8, **{"External id": 3})
    assert outcome(tiny.session(operator, kernel), "no-links")["outcome"] == "passed"
