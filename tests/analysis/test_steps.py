"""Steps end with the device work they launched, and make the window of the figures."""

from __future__ import annotations

from maiprof_nb import TimeWindow
from maiprof_nb.analysis.steps import figure_window, steps
from tests import tiny_traces as tiny

US = 1000


def test_a_step_ends_with_the_work_it_launched():
    session = tiny.session(
        tiny.step(4, 1000, 100),
        tiny.step(5, 1100, 100),
        tiny.launch(1, 1090),
        tiny.launch(2, 1150),
        tiny.kernel(1130, 50, correlation=1),  # of step 4, during step 5
        tiny.kernel(1185, 5, correlation=2),  # of step 5, ends inside it
        tiny.kernel(1500, 9),  # of nobody
    )
    found = steps(session)
    assert found["step"].tolist() == [4, 5]
    assert (found["dur_ns"] / US).tolist() == [100, 100]
    assert (found["end_ns"] / US).tolist() == [180, 200]


def test_hta_76_the_last_step_is_not_dropped():
    """HTA leaves out the last step; here it counts, torn or not."""
    session = tiny.session(*(tiny.step(n, 1000 + 100 * n, 100) for n in range(3)))
    assert steps(session)["step"].tolist() == [0, 1, 2]
    assert figure_window(session).window.dur_ns == 300 * US


def test_steps_mirrored_to_the_device_are_not_counted_twice():
    session = tiny.session(
        tiny.step(1, 1000, 100),
        tiny.kernel(1020, 60, name="ProfilerStep#1", category="gpu_user_annotation"),
    )
    assert len(steps(session)) == 1


def test_kineto_747_no_step_is_longer_than_its_trace():
    """An overview showed 200 ms where the trace shows 30: host mark and its work, no more."""
    session = tiny.session(tiny.step(1, 1000, 30), tiny.launch(1, 1010), tiny.kernel(1012, 5))
    assert figure_window(session).window == TimeWindow(0, 30 * US)


def test_all_kernels_of_a_graph_count():
    session = tiny.session(
        tiny.step(1, 1000, 30),
        tiny.launch(9, 1010, name="cudaGraphLaunch"),
        *(tiny.kernel(1020 + 10 * i, 5, correlation=9) for i in range(4)),
    )
    assert steps(session)["end_ns"].tolist() == [55 * US]


def test_ranks_keep_their_own_steps():
    late = [tiny.step(1, 1000, 10), tiny.launch(1, 1001), tiny.kernel(1005, 95, correlation=1)]
    session = tiny.ranks([tiny.step(1, 1000, 10)], late)
    found = steps(session)
    assert found["rank"].tolist() == [0, 1]
    assert (found["end_ns"] / US).tolist() == [10, 100]
    assert figure_window(session).reason == "1 recorded step"


def test_the_window_says_why_it_is_that_one():
    whole = tiny.session(tiny.operator("op", 1000, 50))
    assert figure_window(whole).window == TimeWindow(0, 50 * US)
    assert "whole recording" in figure_window(whole).reason
    device = tiny.session(tiny.operator("op", 1000, 50), tiny.kernel(1010, 5), tiny.kernel(1030, 5))
    assert figure_window(device).window == TimeWindow(10 * US, 35 * US)
    assert "first to last device activity" in figure_window(device).reason
    stepped = tiny.session(tiny.operator("op", 1000, 500), tiny.step(3, 1100, 50))
    assert figure_window(stepped).window == TimeWindow(100 * US, 150 * US)
    assert figure_window(stepped).reason == "1 recorded step"
    chosen = stepped.select(window=TimeWindow(7, 9))
    assert figure_window(chosen).window == TimeWindow(7, 9)
    assert figure_window(chosen).reason == "the selected window"
