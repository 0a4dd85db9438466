"""What is known about a run from its own schedule, not from the files written of it."""

from __future__ import annotations

import bisect
from collections import Counter, defaultdict
from typing import Any

from maiprof_nb.collection.simulation.device import MIB
from maiprof_nb.collection.simulation.metrics_text import Counters
from maiprof_nb.collection.simulation.schedule import Interval, complement, recorded_window, union
from maiprof_nb.collection.simulation.training import EPOCH_NS, Run

SHORTEST_GAP_NS = 1_000
SINGLY_LISTED_FROM_NS = 100_000
PHASES = ("data loading", "forward", "backward", "optimizer", "other")


def truth(run: Run) -> dict[str, Any]:
    """Idle time and its causes, phases, memory and tensor-core use within the recorded steps.

    Times are ns after ``epoch_ns``; device figures cover the ``window_ns``.
    """
    window = recorded_window(run)
    scenario = run.scenario
    return {
        "simulated": True,
        "scenario": scenario.name,
        "change": scenario.change,
        "seed": scenario.seed,
        "settings": {
            "rows_per_batch": scenario.rows_per_batch,
            "num_worker_threads": scenario.num_worker_threads,
            "steps_per_epoch": scenario.steps_per_epoch,
            "epochs_per_sub_dataset": 10,
            "mixed_precision": scenario.mixed_precision,
            "multi_tensor_optimizer": scenario.multi_tensor,
        },
        "epoch_ns": EPOCH_NS,
        "run_ns": [0, run.end_ns],
        "window_ns": list(window),
        "steps": [
            {"step": number, "start_ns": start, "end_ns": end} for number, start, end in run.steps
        ],
        "rows_per_s": round(
            scenario.rows_per_batch * len(run.steps) / ((window[1] - window[0]) / 1e9), 3
        ),
        "sub_dataset_reads": [
            step for step, _, _ in run.steps if step % scenario.steps_per_sub_dataset == 0
        ],
        "device": _device(run, window),
        "gaps": _gaps(run, window),
        "phases": _phases(run, window),
        "metrics": _metrics(run, window),
        "memory": _memory(run),
    }


def _device(run: Run, window: Interval) -> dict[str, Any]:
    activities = [a for a in run.machine.activities if window[0] <= a.start_ns < window[1]]
    busy = sum(end - start for start, end in union((a.start_ns, a.end_ns) for a in activities))
    total = window[1] - window[0]
    kernels = [a for a in activities if a.kernel]
    kernel_ns = sum(a.dur_ns for a in kernels)
    tensor_ns = sum(a.dur_ns for a in kernels if a.kernel and a.kernel.tensor_core)
    return {
        "busy_ns": busy,
        "idle_ns": total - busy,
        "idle_share": (total - busy) / total,
        "activities": dict(sorted(Counter(a.category for a in activities).items())),
        "kernel_ns": kernel_ns,
        "tensor_core_kernel_ns": tensor_ns,
        "tensor_core_share": tensor_ns / kernel_ns,
    }


def _gaps(run: Run, window: Interval) -> dict[str, Any]:
    """Gaps of at least 1 us; each is named after the cause that held for most of it."""
    busy = union((a.start_ns, a.end_ns) for a in run.machine.activities)
    awaited = {done for done, _ in run.machine.waits}
    changes = _changes(run)
    starts = [start for start, _ in changes]
    ns: Counter[str] = Counter()
    count: Counter[str] = Counter()
    after_wait = [0, 0]
    listed = []
    for gap in complement(busy, *window):
        if gap[1] - gap[0] < SHORTEST_GAP_NS:
            continue
        shares = _shares(changes, starts, gap)
        main = max(shares, key=lambda cause: (shares[cause], cause))
        ns[main] += gap[1] - gap[0]
        count[main] += 1
        if gap[0] in awaited:
            after_wait[0] += 1
            after_wait[1] += gap[1] - gap[0]
        if gap[1] - gap[0] >= SINGLY_LISTED_FROM_NS:
            listed.append(
                {
                    "start_ns": gap[0],
                    "end_ns": gap[1],
                    "cause": main.partition("/")[0],
                    "detail": main.partition("/")[2],
                    "shares_ns": shares,
                    "follows_wait": gap[0] in awaited,
                }
            )
    by_cause = {cause: {"count": count[cause], "ns": ns[cause]} for cause in sorted(ns)}
    return {
        "shortest_ns": SHORTEST_GAP_NS,
        "by_cause": by_cause,
        "after_wait": {"count": after_wait[0], "ns": after_wait[1]},
        "from_100_us": listed,
    }


def _changes(run: Run) -> list[tuple[int, str]]:
    """The causes in order of time; of several that begin together the last holds."""
    return sorted(dict(run.machine.causes).items())


def _shares(changes: list[tuple[int, str]], starts: list[int], gap: Interval) -> dict[str, int]:
    shares: dict[str, int] = defaultdict(int)
    place = bisect.bisect_right(starts, gap[0]) - 1
    while place < len(changes) and changes[place][0] < gap[1]:
        stop = changes[place + 1][0] if place + 1 < len(changes) else gap[1]
        overlap = min(stop, gap[1]) - max(changes[place][0], gap[0])
        if overlap > 0:
            shares[changes[place][1]] += overlap
        place += 1
    return dict(sorted(shares.items()))


def _phases(run: Run, window: Interval) -> dict[str, Any]:
    first = run.scenario.first_step
    host = {phase: [0] * len(run.steps) for phase in PHASES}
    for span in run.machine.phases:
        if span.step >= first:
            host[span.phase][span.step - first] += span.end_ns - span.start_ns
    launched: dict[str, list[int]] = {phase: [0, 0] for phase in PHASES}
    for activity in run.machine.activities:
        if window[0] <= activity.launch.start_ns < window[1]:
            launched[activity.phase][0] += activity.kernel is not None
            launched[activity.phase][1] += activity.dur_ns
    return {
        phase: {
            "host_ns_per_step": host[phase],
            "kernels": launched[phase][0],
            "kernels_per_step": launched[phase][0] / len(run.steps),
            "device_ns": launched[phase][1],
        }
        for phase in PHASES
    }


def _metrics(run: Run, window: Interval) -> dict[str, Any]:
    counters, device = Counters(run), run.machine.device
    used = device.context_mib + run.machine.allocator.peak_reserved_bytes // MIB
    kernel_share = counters.kernel_busy.mean(*window)
    occupancy = counters.sm_occupancy.mean(*window)
    return {
        "kernel_busy_share": kernel_share,
        "sm_active": counters.sm_active.mean(*window),
        "sm_occupancy": occupancy,
        "occupancy_of_kernels": occupancy / kernel_share,
        "tensor_active": counters.tensor_active.mean(*window),
        "peak_memory_used_mib": used,
        "memory_total_mib": device.total_mib,
        "peak_memory_share": used / device.total_mib,
    }


def _memory(run: Run) -> dict[str, Any]:
    allocator = run.machine.allocator
    leaked = run.leaked[-1] if run.leaked else None
    return {
        "peak_allocated_bytes": allocator.peak_allocated_bytes,
        "peak_ts_ns": allocator.peak_ts_ns,
        "peak_reserved_bytes": allocator.peak_reserved_bytes,
        "end_allocated_bytes": allocator.allocated_bytes,
        "end_requested_bytes": allocator.requested_bytes,
        "end_reserved_bytes": allocator.reserved_bytes,
        "leak_bytes_per_step": leaked.elements * leaked.width if leaked else 0,
        "leaked_tensors": len(run.leaked),
        "leak_stack": _stack(run, leaked.address) if leaked else [],
        "events": dict(sorted(Counter(event.action for event in allocator.events).items())),
    }


def _stack(run: Run, address: int) -> list[str]:
    """The Python lines that allocated the live block at `address`, innermost first."""
    frames = next(
        block.frames
        for segment in run.machine.allocator.segments.values()
        for block in segment.blocks
        if block.address == address and block.allocated
    )
    return [f"{f['filename']}:{f['line']} {f['name']}" for f in frames if f["line"]]
