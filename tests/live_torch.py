"""Records small loops with torch.profiler, as they run here, on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import maiprof_nb

torch = pytest.importorskip("torch", reason="these recordings are made here, by torch.profiler")

STEPS = 6


def recorded(
    folder: Path, step: Callable[[int], object], *, steps: int = STEPS, **how: Any
) -> maiprof_nb.Session:
    """The session of `steps` calls of ``step(number)``, each a ``ProfilerStep``.

    One more call, with number -1, comes before them, in the profiler's own warm-up.
    """
    path = folder / "live.pt.trace.json"
    profiler = torch.profiler
    with profiler.profile(
        activities=[profiler.ProfilerActivity.CPU],
        schedule=profiler.schedule(wait=0, warmup=1, active=steps, repeat=1),
        on_trace_ready=lambda made: made.export_chrome_trace(str(path)),
        **how,
    ) as profile:
        for number in range(-1, steps):
            step(number)
            profile.step()
    return maiprof_nb.load(path)
