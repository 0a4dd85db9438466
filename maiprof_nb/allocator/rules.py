"""Sizes by which the caching allocator rounds, and the options that change them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

MIB = 2**20
SMALLEST_BLOCK = 512
SMALL_REQUEST_LIMIT = MIB
SMALL_SEGMENT = 2 * MIB
LARGE_SEGMENT = 20 * MIB
OWN_SEGMENT_FROM = 10 * MIB
OWN_SEGMENT_ROUNDING = 2 * MIB
UNSPLIT_ROUNDING = 20 * MIB  # a request above max_split_size takes no block larger by this much
DEFAULT_POOL = "(0, 0)"

_POWERS = 16  # divisions are given for 1 MiB, 2 MiB ... 32 GiB
_MIB_LOG2 = 20


@dataclass(frozen=True, slots=True)
class AllocatorSettings:
    """The options of ``PYTORCH_CUDA_ALLOC_CONF`` that decide where a block goes.

    Parameters
    ----------
    max_split_bytes : int or None
        Blocks of this size and above are not split; None = no such limit.
    expandable : bool
        One growing segment a stream and size class.
    roundup_power2_divisions : tuple of int
        For requests of 1, 2, 4 ... MiB, into how many parts a power of two is cut for
        rounding up; empty or 0 = multiples of 512 B.
    """

    max_split_bytes: int | None = None
    expandable: bool = False
    roundup_power2_divisions: tuple[int, ...] = ()

    @classmethod
    def of_snapshot(cls, stated: Mapping[str, Any]) -> AllocatorSettings:
        """From a snapshot's `allocator_settings`; the defaults for what it does not state."""
        split = stated.get("max_split_size", -1)
        table = stated.get("roundup_power2_divisions")
        divisions: tuple[int, ...] = ()
        if isinstance(table, Mapping) and any(table.values()):
            divisions = tuple(int(table.get(str(1 << power), 0) or 0) for power in range(_POWERS))
        limited = isinstance(split, int) and 0 < split < 2**60
        return cls(
            max_split_bytes=split if limited else None,
            expandable=bool(stated.get("expandable_segments")),
            roundup_power2_divisions=divisions,
        )


def rounded(size_bytes: int, settings: AllocatorSettings | None = None) -> int:
    """Bytes of the block for a request of `size_bytes`."""
    divisions = settings.roundup_power2_divisions if settings else ()
    if divisions:
        log2 = max(size_bytes, 1).bit_length() - 1
        parts = divisions[min(max(log2 - _MIB_LOG2, 0), len(divisions) - 1)]
        if parts > 1 and size_bytes > SMALLEST_BLOCK * parts:
            part = max((1 << log2) // parts, 1)
            return -(-size_bytes // part) * part
    return max(SMALLEST_BLOCK, -(-size_bytes // SMALLEST_BLOCK) * SMALLEST_BLOCK)


def rounded_all(size_bytes: npt.NDArray[np.int64], settings: AllocatorSettings) -> Any:
    """As `rounded`, of many requests."""
    plain = np.maximum(-(-size_bytes // SMALLEST_BLOCK), 1) * SMALLEST_BLOCK
    if not settings.roundup_power2_divisions:
        return plain
    divisions = np.array(settings.roundup_power2_divisions, dtype=np.int64)
    log2 = np.frexp(np.maximum(size_bytes, 1).astype(np.float64))[1].astype(np.int64) - 1
    parts = divisions[np.clip(log2 - _MIB_LOG2, 0, len(divisions) - 1)]
    part = np.maximum((np.int64(1) << log2) // np.maximum(parts, 1), 1)
    applies = (parts > 1) & (size_bytes > SMALLEST_BLOCK * parts)
    return np.where(applies, -(-size_bytes // part) * part, plain)


def segment_size(block_bytes: int) -> int:
    """Bytes taken from the device when no free block can hold `block_bytes`."""
    if block_bytes <= SMALL_REQUEST_LIMIT:
        return SMALL_SEGMENT
    if block_bytes < OWN_SEGMENT_FROM:
        return LARGE_SEGMENT
    return -(-block_bytes // OWN_SEGMENT_ROUNDING) * OWN_SEGMENT_ROUNDING


def largest_request(device_bytes: int) -> int:
    """The most that one request may ask for if the device still gives so many bytes."""
    if device_bytes >= OWN_SEGMENT_FROM:
        return device_bytes // OWN_SEGMENT_ROUNDING * OWN_SEGMENT_ROUNDING
    return SMALL_REQUEST_LIMIT if device_bytes >= SMALL_SEGMENT else 0
