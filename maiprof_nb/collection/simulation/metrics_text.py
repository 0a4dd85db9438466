"""A run as the logs that nvidia-smi and dcgm-exporter would have left beside it."""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from maiprof_nb.collection.simulation.device import MIB
from maiprof_nb.collection.simulation.machine import Activity
from maiprof_nb.collection.simulation.schedule import Integral
from maiprof_nb.collection.simulation.training import EPOCH_NS, Run

SAMPLE_NS = 500_000_000
_TENSOR_PIPE_SHARE = 0.62  # of a tensor-core kernel's cycles
_IDLE_W, _BUSY_W = 64.0, 246.0
_IDLE_C, _BUSY_C, _COOLING = 34.0, 63.0, 0.055
_HOT_C = 91
_CSV_HEADER = (
    "timestamp, index, name, utilization.gpu [%], utilization.memory [%], memory.used [MiB], "
    "memory.total [MiB], power.draw [W], temperature.gpu, clocks.current.sm [MHz]"
)
_EXPOSED = (
    (
        "DCGM_FI_PROF_SM_ACTIVE",
        "The ratio of cycles an SM has at least 1 warp assigned.",
        "sm_active",
    ),
    (
        "DCGM_FI_PROF_SM_OCCUPANCY",
        "The ratio of number of warps resident on an SM.",
        "sm_occupancy",
    ),
    (
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
        "Ratio of cycles the tensor (HMMA) pipe is active.",
        "tensor_active",
    ),
    ("DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).", "fb_used_mib"),
    ("DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB).", "fb_free_mib"),
)


class Counters:
    """What a sampler would read from the device at any time of the run."""

    def __init__(self, run: Run) -> None:
        self.run, self.device = run, run.machine.device
        activities = run.machine.activities
        kernels = [activity for activity in activities if activity.kernel]
        self.kernel_busy = Integral(kernels, lambda _: 1.0)
        self.memory_busy = Integral(activities, _moves_memory)
        self.sm_active = Integral(kernels, self._active)
        self.sm_occupancy = Integral(kernels, self._occupancy)
        self.tensor_active = Integral(kernels, _uses_tensor_cores)

    def used_mib(self, ts_ns: int) -> int:
        """Device memory in use: the context and what the allocator has reserved."""
        changes = self.run.machine.allocator.reserved_changes
        place = bisect.bisect_right(changes, ts_ns, key=lambda change: change[0]) - 1
        return self.device.context_mib + (changes[place][1] // MIB if place >= 0 else 0)

    def _active(self, activity: Activity) -> float:
        return min(1.0, self.device.blocks_per_sm_of(activity.kernel)) if activity.kernel else 0.0

    def _occupancy(self, activity: Activity) -> float:
        return self.device.occupancy_pct(activity.kernel) / 100 if activity.kernel else 0.0


def _moves_memory(activity: Activity) -> float:
    return 1.0 if activity.kernel is None or activity.kernel.memory_bound else 0.35


def _uses_tensor_cores(activity: Activity) -> float:
    return _TENSOR_PIPE_SHARE if activity.kernel and activity.kernel.tensor_core else 0.0


def _sample_times(run: Run) -> Iterator[int]:
    yield from range(SAMPLE_NS, run.end_ns, SAMPLE_NS)


def smi_csv(run: Run) -> bytes:
    """``nvidia-smi --query-gpu=... --format=csv -lms 500``; its local time is UTC here."""
    counters, device, heat, lines = Counters(run), run.machine.device, _IDLE_C, [_CSV_HEADER]
    for at in _sample_times(run):
        busy = counters.kernel_busy.mean(at - SAMPLE_NS, at)
        memory = counters.memory_busy.mean(at - SAMPLE_NS, at)
        heat += _COOLING * (_IDLE_C + (_BUSY_C - _IDLE_C) * busy - heat)
        watts = _IDLE_W + (_BUSY_W - _IDLE_W) * (0.55 * busy + 0.45 * memory)
        degrees = _HOT_C if device.is_hot(at) else round(heat)
        moment = datetime.fromtimestamp((EPOCH_NS + at) // 1_000_000 / 1000, tz=UTC)
        lines.append(
            f"{moment:%Y/%m/%d %H:%M:%S}.{moment.microsecond // 1000:03d}, 0, {device.name}, "
            f"{round(busy * 100)} %, {round(memory * 100)} %, {counters.used_mib(at)} MiB, "
            f"{device.total_mib} MiB, {watts:.2f} W, {degrees}, {device.clock_at(at)} MHz"
        )
    return ("\n".join(lines) + "\n").encode()


def dcgm_text(run: Run) -> bytes:
    """The exposition text of dcgm-exporter with a time stamp (ms) at every sample."""
    device, values = run.machine.device, _dcgm_values(run)
    label = (
        f'gpu="0",UUID="{device.uuid}",device="nvidia0",modelName="{device.name}",'
        f'Hostname="simulated-host"'
    )
    lines = [f"# simulated by maiprof_nb, scenario {run.scenario.name}, seed {run.scenario.seed}"]
    for name, meaning, key in _EXPOSED:
        lines += [f"# HELP {name} {meaning}", f"# TYPE {name} gauge"]
        lines += [f"{name}{{{label}}} {sample[key]} {sample['ms']}" for sample in values]
    return ("\n".join(lines) + "\n").encode()


def _dcgm_values(run: Run) -> list[dict[str, Any]]:
    counters, device = Counters(run), run.machine.device
    samples = []
    for at in _sample_times(run):
        used = counters.used_mib(at)
        samples.append(
            {
                "ms": (EPOCH_NS + at) // 1_000_000,
                "sm_active": f"{counters.sm_active.mean(at - SAMPLE_NS, at):.6f}",
                "sm_occupancy": f"{counters.sm_occupancy.mean(at - SAMPLE_NS, at):.6f}",
                "tensor_active": f"{counters.tensor_active.mean(at - SAMPLE_NS, at):.6f}",
                "fb_used_mib": used,
                "fb_free_mib": device.total_mib - used,
            }
        )
    return samples
