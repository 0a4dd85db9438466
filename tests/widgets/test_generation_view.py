"""Prefill and decode over time; what the dashboard and guide 4 show in their place."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd

from maiprof_nb.findings import work_verdict
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow
from maiprof_widgets import GenerationView, LinkState, LoopView, Overview, PhasesView
from maiprof_widgets.figures.generation import MAX_PASSES, generation_panels
from maiprof_widgets.figures.theme import LIGHT
from tests import tiny_traces as tiny

US = 1000


def served(decodes: int = 5) -> list[tiny.Event]:
    """One prompt of 60 tokens, 100 us wide, then decode passes of 20 us, 25 us apart."""
    events = [
        tiny.annotation("execute_context_1(60)_generation_0(0)", 1000, 100),
        tiny.operator("aten::mm", 1005, 20),
        tiny.launch(0, 1010),
        tiny.kernel(1020, 80, correlation=0),
    ]
    for number in range(1, decodes + 1):
        at = 1100 + 25 * number
        events += [
            tiny.annotation("execute_context_0(0)_generation_4(4)", at, 20),
            tiny.launch(number, at + 2),
            tiny.kernel(at + 6, 4, correlation=number),
        ]
    return events


def bars(view: GenerationView) -> dict[str, list[tuple[float, float]]]:
    found = {}
    for trace in view.figure.data[:3]:
        x = np.asarray(trace.x)
        found[trace.name] = [(x[i], x[i + 1]) for i in range(0, len(x), 3)]
    return found


def test_one_wide_prefill_and_a_train_of_decodes() -> None:
    view = GenerationView(tiny.session(*served()), LinkState())
    assert view.status.value == ""
    found = bars(view)
    assert found["prefill"] == [(0, 100)]
    assert found["decode"] == [(125 + 25 * n, 145 + 25 * n) for n in range(5)]
    assert found["mixed"] == []
    cells = view.children[2].value
    # 20 tokens in 100 us of passes, of which 20 us are busy
    for cell in ("decode", "20", "200\N{NARROW NO-BREAK SPACE}000", "20.0 µs", "20.0 %"):
        assert f"<td>{cell}</td>" in cells
    assert "server&#x27;s marks" in cells or "server's marks" in cells


def test_it_follows_the_window_and_a_click_on_a_pass_shows_it() -> None:
    link = LinkState()
    view = GenerationView(tiny.session(*served()), link)
    view._on_click(view.figure.data[2], SimpleNamespace(point_inds=[4]), None)
    assert link.window == TimeWindow(150 * US, 170 * US)
    assert bars(view)["decode"] == [(150, 170)]
    assert bars(view)["prefill"] == []


def test_many_passes_share_bars() -> None:
    count = 5 * MAX_PASSES
    at = np.arange(count) * 10
    passes = pd.DataFrame(
        {"ts_ns": at, "end_ns": at + 8, "stage": "decode", "tokens": pd.array([4] * count, "Int64"),
         "kernels": 2, "launches": 1}
    )  # fmt: skip
    panel = generation_panels(passes, TimeWindow(0, 10 * count), LIGHT.series)[0]
    curve = panel.curves[-1]
    assert len(curve.ts_ns) == 3 * MAX_PASSES
    assert curve.text[0] == "5 passes of decode: 8.00 ns each, 20 tokens, 5 launches, 10 kernels"


def test_generation_takes_the_place_of_the_phases_only_without_training() -> None:
    served_only = tiny.session(*served())
    trained: Session = tiny.session(*served(), tiny.operator("Optimizer.step#SGD.step", 1300, 5))
    assert isinstance(LoopView(served_only, LinkState()).children[0], GenerationView)
    assert isinstance(LoopView(trained, LinkState()).children[0], PhasesView)
    assert "prefill and decode" in Overview(served_only).folds["loop"].button.description
    assert "training loop" in Overview(trained).folds["loop"].button.description
    assert "decode" in work_verdict(served_only).figure
    assert "Host time" in work_verdict(trained).figure
