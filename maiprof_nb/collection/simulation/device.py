"""The simulated device: what it can do, and how much of it a kernel occupies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

MIB = 2**20


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel as launched: name, time on the device, and the resources of a block."""

    name: str
    dur_ns: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers: int = 32
    shared_bytes: int = 0
    tensor_core: bool = False
    memory_bound: bool = True


@dataclass(frozen=True, slots=True)
class Device:
    """An invented GPU with the rates and limits of a data-centre card of 80 GB."""

    name: str = "Simulated GPU 80GB"
    uuid: str = "GPU-51a0ca7e-0000-4000-8000-000000000000"
    total_mib: int = 81_920
    context_mib: int = 555
    sms: int = 108
    threads_per_sm: int = 2048
    blocks_per_sm: int = 32
    registers_per_sm: int = 65_536
    shared_bytes_per_sm: int = 167_936
    flops_fp32: float = 17.6e12
    flops_fp16: float = 172e12
    bytes_per_s: float = 1.48e12
    copy_bytes_per_s: float = 12.4e9
    clock_mhz: int = 1410
    hot_clock_mhz: int = 900
    hot_from_ns: int | None = None

    def is_hot(self, ts_ns: int) -> bool:
        """Whether heat holds the clock down."""
        return self.hot_from_ns is not None and ts_ns >= self.hot_from_ns

    def clock_at(self, ts_ns: int) -> int:
        """The clock in MHz; the rates above are those at the full one."""
        return self.hot_clock_mhz if self.is_hot(ts_ns) else self.clock_mhz

    @property
    def allocatable_bytes(self) -> int:
        """What the caching allocator can take from the device."""
        return (self.total_mib - self.context_mib) * MIB

    def blocks_per_sm_of(self, kernel: Kernel) -> float:
        """Blocks of the whole grid for each multiprocessor."""
        return math.prod(kernel.grid) / self.sms

    def occupancy_pct(self, kernel: Kernel) -> int:
        """Estimated achieved occupancy as Kineto computes it, in whole percent."""
        threads = math.prod(kernel.block)
        registers = -(-kernel.registers // 8) * 8 * threads
        fit = min(
            self.blocks_per_sm,
            self.threads_per_sm // threads,
            self.registers_per_sm // registers,
            self.shared_bytes_per_sm // max(kernel.shared_bytes, 1),
        )
        resident = min(float(fit), self.blocks_per_sm_of(kernel))
        return min(100, int(resident * threads * 100 / self.threads_per_sm))

    @property
    def properties(self) -> dict[str, Any]:
        """The device as an entry of a trace's ``deviceProperties``."""
        return {
            "id": 0,
            "name": self.name,
            "totalGlobalMem": self.total_mib * MIB,
            "computeMajor": 8,
            "computeMinor": 0,
            "maxThreadsPerBlock": 1024,
            "maxThreadsPerMultiprocessor": self.threads_per_sm,
            "regsPerBlock": 65_536,
            "warpSize": 32,
            "sharedMemPerBlock": 49_152,
            "numSms": self.sms,
            "regsPerMultiprocessor": self.registers_per_sm,
            "sharedMemPerBlockOptin": 166_912,
            "sharedMemPerMultiprocessor": self.shared_bytes_per_sm,
        }
