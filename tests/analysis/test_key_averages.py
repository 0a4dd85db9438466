"""The operator ranking against torch's own `key_averages()` of the same run."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import maiprof_nb
from maiprof_nb.analysis.operator_ranking import operator_ranking

torch = pytest.importorskip("torch", reason="the truth of these tests is torch.profiler itself")


def mlp_training() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(4):
        optimizer.zero_grad()
        loss = model(torch.randn(16, 32)).square().mean()
        loss.backward()
        optimizer.step()


def convolutions() -> None:
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.AdaptiveAvgPool2d(1)
    )
    for size in (16, 24, 16):
        model(torch.randn(2, 3, size, size)).sum().backward()


def attention() -> None:
    layer = torch.nn.TransformerEncoderLayer(32, 4, dim_feedforward=64, batch_first=True)
    layer(torch.randn(2, 7, 32)).mean().backward()


def threads() -> None:
    def work() -> None:
        for _ in range(5):
            torch.mm(torch.randn(20, 20), torch.randn(20, 20))

    running = [threading.Thread(target=work) for _ in range(3)]
    for thread in running:
        thread.start()
    work()
    for thread in running:
        thread.join()


def recursion() -> None:
    def descend(depth: int) -> None:
        with torch.profiler.record_function("descend"):
            torch.ones(3).add_(1)
            if depth:
                descend(depth - 1)
                torch.zeros(2)
            if depth == 2:
                with (
                    torch.profiler.record_function("alone"),
                    torch.profiler.record_function("alone"),
                ):
                    torch.sin(torch.ones(4))

    for _ in range(3):
        descend(4)


def ranges_and_shapes() -> None:
    for columns in (4, 8, 4):
        with torch.profiler.record_function("## forward ##"):
            torch.mm(torch.randn(3, columns), torch.randn(columns, 5)).sum()
        with torch.profiler.record_function("odd <b>name&amp;"):
            torch.cat([torch.ones(columns), torch.zeros(2)])


WORKLOADS = [mlp_training, convolutions, attention, threads, recursion, ranges_and_shapes]
OPTIONS = {
    "plain": {},
    "shapes": {"record_shapes": True},
    "everything": {"record_shapes": True, "with_stack": True, "profile_memory": True},
}


def profiled(workload: Callable[[], None], path: Path, **options: bool) -> torch.profiler.profile:
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=torch.profiler.schedule(wait=0, warmup=1, active=2, repeat=1),
        on_trace_ready=lambda p: p.export_chrome_trace(str(path)),
        **options,
    ) as profiler:
        for _ in range(3):
            workload()
            profiler.step()
    return profiler


def truth(profiler: torch.profiler.profile, *, shapes: bool) -> pd.DataFrame:
    rows = [
        {
            "name": row.key,
            "input_dims": str(row.input_shapes) if shapes and row.input_shapes else "",
            "calls": row.count,
            "self_us": row.self_cpu_time_total,
            "total_us": row.cpu_time_total,
        }
        for row in profiler.key_averages(group_by_input_shape=shapes)
        if row.key not in {"[memory]", "[OutOfMemory]"}
    ]
    table = pd.DataFrame(rows).groupby(["name", "input_dims"]).sum()
    return table.sort_index()


def ours(path: Path, *, shapes: bool, stacks: bool = False) -> pd.DataFrame:
    by = "shapes" if shapes else "name"
    ranking = operator_ranking(maiprof_nb.load(path), by=by, with_python=stacks)
    dims = [_without_lists(text) for text in ranking["input_dims"]] if shapes else ""
    table = ranking.assign(
        name=ranking["name"].astype("str"),
        input_dims=dims,
        self_us=ranking["self_ns"] / 1000,
        total_us=ranking["total_ns"] / 1000,
    )
    columns = ["calls", "self_us", "total_us"]
    return table.groupby(["name", "input_dims"])[columns].sum().sort_index()


def _without_lists(written: object) -> str:
    """Shapes as torch groups by: a list of tensors (`torch.cat`) counts as no shape there."""
    shapes = json.loads(written) if isinstance(written, str) else []
    plain = [[] if any(isinstance(side, list) for side in shape) else shape for shape in shapes]
    return str(plain) if plain else ""


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.__name__)
@pytest.mark.filterwarnings("default")
def test_ranking_equals_key_averages(
    workload: Callable[[], None], options: dict[str, bool], tmp_path: Path
) -> None:
    path = tmp_path / "trace.json"
    profiler = profiled(workload, path, **options)
    for shapes in {False, options.get("record_shapes", False)}:
        want = truth(profiler, shapes=shapes)
        got = ours(path, shapes=shapes, stacks=options.get("with_stack", False))
        assert list(got.index) == list(want.index)
        assert list(got["calls"]) == list(want["calls"])
        for column in ("self_us", "total_us"):
            off_us = (got[column] - want[column]).abs()
            assert (off_us <= want["calls"] * 0.001 + 1e-6).all(), off_us[off_us > 0.001].to_dict()
