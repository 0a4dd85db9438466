"""The formats that can be read, and the look-alikes that are refused by name."""

from __future__ import annotations

from typing import Protocol

from maiprof_nb.errors import LoadError
from maiprof_nb.loading import (
    collapsed_stacks,
    kineto,
    lookalikes,
    memory_timeline,
    pyspy_chrome,
    snapshot,
    speedscope,
)
from maiprof_nb.loading.metric_formats import METRICS
from maiprof_nb.recording import Recording


class Format(Protocol):
    """A module that says "mine" and reads."""

    NAME: str

    def sniff(self, data: bytes) -> bool:
        """True if `data`, the unwrapped content, is this format."""
        ...

    def read(self, data: bytes, source: str) -> Recording:
        """Read the content of the file `source`."""
        ...


FORMATS: tuple[Format, ...] = (
    snapshot,
    speedscope,
    memory_timeline,
    pyspy_chrome,  # before kineto, whose sniff takes any Chrome trace
    kineto,
    *METRICS,
    collapsed_stacks,
)


def read(data: bytes, source: str) -> Recording:
    """Read `data` with the first format that recognises it.

    Raises
    ------
    LoadError
        If it is a known look-alike, or nothing known.
    """
    reason = lookalikes.reason(data)
    if reason:
        raise LoadError(reason.problem, where=source, remedy=reason.remedy)
    for known in FORMATS:
        if known.sniff(data):
            return known.read(data, source)
    raise LoadError(
        "is neither a Kineto trace, a CUDA memory snapshot nor a GPU metrics log",
        where=source,
        remedy="Give a file from torch.profiler, torch.cuda.memory._dump_snapshot, py-spy, "
        "nvidia-smi, DCGM, Prometheus, rocm-smi, amd-smi, or another sampler of docs/metrics.md",
    )
