"""The parts of the time shown, counted by hand."""

from __future__ import annotations

import re

from maiprof_nb.timebase import TimeWindow
from maiprof_widgets import BreakdownView, LinkState
from tests.tiny_traces import kernel, memcpy, nccl, operator, ranks, session

PARTS = ["compute_ns", "exposed_communication_ns", "exposed_copy_ns", "idle_ns"]


def job() -> list[dict[str, object]]:
    """0-40 compute, 30-60 communication, 60-70 a copy, nothing until 100."""
    return [kernel(0, 40), nccl(30, 30), memcpy(60, 10), kernel(100, 1)]


def test_it_follows_the_window() -> None:
    link = LinkState()
    view = BreakdownView(session(*job()), link)
    assert view.found[PARTS].iloc[0].tolist() == [41_000, 20_000, 10_000, 30_000]
    link.window = TimeWindow(35_000, 85_000)
    assert view.found[PARTS].iloc[0].tolist() == [5_000, 20_000, 10_000, 15_000]
    widths = [float(width) for width in re.findall(r"width:([\d.]+)%", view.bars.value)]
    assert widths == [10, 40, 20, 30]
    assert "the time shown" in view.bars.value
    link.window = None
    assert "first to last device activity" in view.bars.value


def test_it_shows_the_ranks_looked_at() -> None:
    link = LinkState()
    view = BreakdownView(ranks(job(), job(), job()), link)
    assert view.found["rank"].tolist() == [0, 1, 2]
    link.ranks = (1,)
    assert view.found["rank"].tolist() == [1]
    assert view.bars.value.count("<tr>") == 2  # the head and one device


def test_without_device_work_it_says_so() -> None:
    view = BreakdownView(session(operator("aten::mm", 0, 10)), LinkState())
    assert view.bars.value == ""
    assert "ProfilerActivity.CUDA" in view.status.value
