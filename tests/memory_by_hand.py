"""A snapshot's log undone one event after the other: another way to the same figures.

No pairing, no forward sum, nothing shared with the code under test but what the corpus'
FORMAT.md says of the allocator: requests are rounded to 512 B, and of a large block no rest of
1 MiB or less is split off.
"""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.conftest import CORPUS

MIB = 2**20
SYNTHETIC = "mosaic/output.pickle"  # its addresses and sizes are random numbers (SOURCES.md)
SNAPSHOTS = sorted(str(p.relative_to(CORPUS / "memory")) for p in CORPUS.glob("memory/*/*.pickle*"))
REAL = [name for name in SNAPSHOTS if name != SYNTHETIC] or [
    pytest.param("", marks=pytest.mark.skip(reason=f"no corpus at {CORPUS}: set MAIPROF_CORPUS"))
]


class Totals(NamedTuple):
    """Bytes in each state of one device's log; state ``k`` is after ``k`` events."""

    allocated: np.ndarray
    requested: np.ndarray
    reserved: np.ndarray


class Life(NamedTuple):
    """Lives from after event `first` until event `last`; the size is exact or as requested."""

    address: int
    size: int
    first: int
    last: int
    exact: bool
    requested: int


def content_of(path: Path) -> Any:
    """The pickle as Python's own unpickler gives it."""
    data = path.read_bytes()
    return pickle.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def totals(content: dict[str, Any], device: int) -> Totals:
    """Follow one device back from the final state, trying every border for each large block."""
    trace = content["device_traces"][device] if content["device_traces"] else []
    used, taken = {}, {}
    for segment in content["segments"]:
        if segment["device"] != device:
            continue
        taken[segment["address"]] = segment["total_size"], 0
        at = segment["address"]
        for block in segment["blocks"]:
            if block["state"].startswith("active"):
                used[at] = block["size"], block.get("requested_size", block["size"])
            at += block["size"]
    blocks = _undone(trace, ("alloc",), ("free_completed",), used)
    segments = _undone(
        trace, ("segment_alloc", "segment_map"), ("segment_free", "segment_unmap"), taken
    )
    borders = [(life.address, life.first, life.last) for life in blocks]
    borders += [(life.address + life.size, life.first, life.last) for life in segments]
    border, since, till = np.array(borders, dtype=np.int64).reshape(-1, 3).T
    sized = []
    for life in blocks:
        size = life.size if life.exact else max(512, -(-life.size // 512) * 512)
        if not life.exact and size > MIB:
            beside = border[(since < life.last) & (till > life.first)] - life.address - size
            near = beside[(beside >= 0) & (beside <= MIB)]
            size += int(near.min()) if len(near) else 0
        sized.append(size)
    return Totals(
        _summed(blocks, sized, len(trace)),
        _summed(blocks, [life.requested for life in blocks], len(trace)),
        _summed(segments, [life.size for life in segments], len(trace)),
    )


def _undone(trace: Any, opens: Any, closes: Any, final: dict[int, tuple[int, int]]) -> list[Life]:
    live = {at: (size, asked, len(trace), True) for at, (size, asked) in final.items()}
    found = []
    for number, row in reversed(list(enumerate(trace))):
        if row["action"] in opens:
            size, asked, last, exact = live.pop(row["addr"])
            found.append(Life(row["addr"], size, number, last, exact, asked))
        elif row["action"] in closes:
            assert row["addr"] not in live
            live[row["addr"]] = row["size"], row["size"], number, False
    return found + [
        Life(at, size, -1, last, exact, asked) for at, (size, asked, last, exact) in live.items()
    ]


def _summed(lives: list[Life], sizes: list[int], ends: int) -> np.ndarray:
    change = np.zeros(ends + 2, dtype=np.int64)
    for life, size in zip(lives, sizes, strict=True):
        change[life.first + 1] += size
        change[life.last + 1] -= size
    return np.cumsum(change)[:-1]
