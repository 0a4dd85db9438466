"""Names out of a snapshot are text in every memory view, however they are written."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import ipywidgets
import pytest

from maiprof_nb.loading import registry
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow
from maiprof_widgets.dashboards.memory import MemoryDashboard
from maiprof_widgets.link import Selection
from tests.analysis.made_memory_logs import LoggedAllocator

MIB = 2**20
EVIL = '<img src=x onerror="window.broken=1">\x00\x1b[31m\u202e</script>'
RAW = ("<img", "</script>", "\x00", "\x1b", "\u202e")


@pytest.fixture(scope="module")
def evil() -> Session:
    """Forty steps that leave a block behind, then a request that fails; every name is evil."""
    allocator = LoggedAllocator(limit_bytes=2**31)
    for _ in range(40):
        tooth = [allocator.alloc(8 * MIB) for _ in range(6)]
        allocator.alloc(3 * MIB)
        for address in tooth:
            allocator.free(address)
    frames = [{"name": f"forward {EVIL}", "filename": f"/job/{EVIL}.py", "line": 1}]
    log = [row | {"frames": frames} for row in allocator.events]
    last = {"action": "oom", "size": 2**31, "device_free": MIB, "stream": 0, "frames": frames}
    segments = allocator.parts()
    for segment in segments:
        for block in segment["blocks"]:
            block["frames"] = frames
    content = {
        "segments": segments,
        "device_traces": [[*log, last | {"time_us": len(log)}]],
        "external_annotations": [
            {"stage": stage, "name": EVIL, "device": 0, "time_us": at}
            for stage, at in (("START", 1), ("END", 300))
        ],
        "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": EVIL},
    }
    return Session([registry.read(pickle.dumps(content), f"{EVIL}.pickle")])


def _html(widget: Any) -> Iterator[str]:
    if isinstance(widget, ipywidgets.HTML):
        yield str(widget.value)
    for child in getattr(widget, "children", ()):
        yield from _html(child)


def test_no_name_is_markup(evil: Session) -> None:
    """At the start, at a moment, with a block and a stack chosen, and zoomed; all folds open."""
    dashboard = MemoryDashboard(evil)
    for fold in dashboard.folds.values():
        fold.button.value = True
    seen = 0
    for name, value in (
        ("dark", False),
        ("moment_ns", 200_000),
        ("selection", Selection("allocations", row=5, recording=0)),
        ("selection", Selection("stacks", row=0, recording=0)),
        ("window", TimeWindow(1_000, 100_000)),
    ):
        setattr(dashboard.link, name, value)
        for html in _html(dashboard):
            assert not [sign for sign in RAW if sign in html], html
            seen += "&lt;img" in html
    assert seen  # the names are shown, as text
    assert not dashboard.memory.status
