"""What the profiler costs a recorded event: ``python benchmarks/profiler_cost.py``.

Times the same loop without and with the profiler, in turns within one run, and divides the
difference by the events recorded. The figures are settings of
`maiprof_nb.findings.rules.profiler_overhead`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

CALLS, TURNS = 20_000, 7
SMALL = torch.ones(8)


def operators() -> None:
    """Short operators, one event each."""
    for _ in range(CALLS):
        torch.neg(SMALL)


def functions() -> None:
    """Short Python functions, one event each, without operators."""
    for _ in range(CALLS):
        _nothing()


def _nothing() -> None:
    pass


def seconds(work: Callable[[], None], **options: Any) -> float:
    """Wall time of the work under these options of the profiler; none = no profiler."""
    if not options:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start
    with profile(activities=[ProfilerActivity.CPU], **options):
        start = time.perf_counter()
        work()
        return time.perf_counter() - start


def cost_us(work: Callable[[], None], **options: bool) -> float:
    """Median difference a call, in microseconds."""
    turns = [seconds(work, **options) - seconds(work) for _ in range(TURNS)]
    return statistics.median(turns) / CALLS * 1e6


def main() -> None:
    """Print one line a kind of event."""
    print(f"torch {torch.__version__}, {CALLS} calls, median of {TURNS} turns")
    print(f"operator           {cost_us(operators, with_stack=False):.2f} us")
    print(f"operator, shapes   {cost_us(operators, record_shapes=True):.2f} us")
    print(f"operator, memory   {cost_us(operators, profile_memory=True):.2f} us")
    print(f"Python function    {cost_us(functions, with_stack=True):.2f} us")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
