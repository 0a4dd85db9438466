"""A compact model of PyTorch's caching allocator for one device, without expandable segments."""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field
from typing import Any

from maiprof_nb.errors import MaiprofError

MIB = 2**20
SMALLEST_BLOCK = 512
SMALL_REQUEST_LIMIT = MIB
SMALL_SEGMENT = 2 * MIB
LARGE_SEGMENT = 20 * MIB
OWN_SEGMENT_FROM = 10 * MIB
OWN_SEGMENT_ROUNDING = 2 * MIB

Frames = list[dict[str, Any]]


class OutOfMemoryError(MaiprofError):
    """The simulated device cannot give the bytes that were asked for."""


@dataclass(slots=True)
class Block:
    """A piece of a segment, in use or free."""

    address: int
    size_bytes: int
    segment: Segment
    requested_bytes: int = 0
    allocated: bool = False
    frames: Frames = field(default_factory=list)


@dataclass(slots=True)
class Segment:
    """Memory taken from the device in one piece; its blocks tile it in address order."""

    address: int
    size_bytes: int
    stream: int
    small: bool
    frames: Frames
    blocks: list[Block] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class AllocatorEvent:
    """One entry of the allocator's log; `size_bytes` is as requested for alloc and free."""

    action: str
    address: int
    size_bytes: int
    stream: int
    ts_ns: int
    frames: Frames


def rounded(size_bytes: int) -> int:
    """Bytes of the block for a request of `size_bytes`."""
    return max(SMALLEST_BLOCK, -(-size_bytes // SMALLEST_BLOCK) * SMALLEST_BLOCK)


def segment_size(block_bytes: int) -> int:
    """Bytes taken from the device when no free block can hold `block_bytes`."""
    if block_bytes <= SMALL_REQUEST_LIMIT:
        return SMALL_SEGMENT
    if block_bytes < OWN_SEGMENT_FROM:
        return LARGE_SEGMENT
    return -(-block_bytes // OWN_SEGMENT_ROUNDING) * OWN_SEGMENT_ROUNDING


class CachingAllocator:
    """Blocks by best fit out of segments that are kept when they fall free.

    Parameters
    ----------
    limit_bytes : int
        What the device can give in all.
    first_address : int
        Address of the first segment.
    """

    def __init__(self, limit_bytes: int, first_address: int = 0x7F00_0000_0000) -> None:
        self.limit_bytes = limit_bytes
        self.reserved_bytes = 0
        self.allocated_bytes = 0
        self.requested_bytes = 0
        self.peak_allocated_bytes = 0
        self.peak_reserved_bytes = 0
        self.peak_ts_ns = 0
        self.segments: dict[int, Segment] = {}
        self.events: list[AllocatorEvent] = []
        self.reserved_changes: list[tuple[int, int]] = []
        self._live: dict[int, Block] = {}
        self._free: dict[tuple[int, bool], list[tuple[int, int]]] = {}
        self._free_blocks: dict[int, Block] = {}
        self._next_address = first_address

    def allocate(self, size_bytes: int, ts_ns: int, frames: Frames, stream: int = 0) -> int:
        """Address of a block for `size_bytes` bytes.

        Raises
        ------
        OutOfMemoryError
            If the device cannot give them even after the cached segments were returned.
        """
        wanted = rounded(size_bytes)
        small = wanted <= SMALL_REQUEST_LIMIT
        block = self._best_fit(wanted, stream, small=small)
        if block is None:
            block = self._new_segment(wanted, size_bytes, ts_ns, frames, stream)
        self._split(block, wanted)
        block.allocated, block.requested_bytes, block.frames = True, size_bytes, frames
        self._live[block.address] = block
        self._log("alloc", block.address, size_bytes, stream, ts_ns, frames)
        self.allocated_bytes += block.size_bytes
        self.requested_bytes += size_bytes
        if self.allocated_bytes > self.peak_allocated_bytes:
            self.peak_allocated_bytes, self.peak_ts_ns = self.allocated_bytes, ts_ns
        return block.address

    def free(self, address: int, ts_ns: int, frames: Frames) -> None:
        """Give back the block at `address`; neighbouring free blocks become one."""
        block = self._live.pop(address)
        for action in ("free_requested", "free_completed"):
            self._log(action, address, block.requested_bytes, block.segment.stream, ts_ns, frames)
        self.allocated_bytes -= block.size_bytes
        self.requested_bytes -= block.requested_bytes
        block.allocated, block.frames = False, []
        self._merge(block)

    def release_cached(self, ts_ns: int, frames: Frames) -> int:
        """Return wholly free segments to the device, as ``empty_cache`` does; their bytes."""
        released = 0
        for segment in list(self.segments.values()):
            if len(segment.blocks) == 1 and not segment.blocks[0].allocated:
                self._remove_free(segment.blocks[0])
                del self.segments[segment.address]
                released += segment.size_bytes
                self._reserve(-segment.size_bytes, ts_ns)
                self._log(
                    "segment_free",
                    segment.address,
                    segment.size_bytes,
                    segment.stream,
                    ts_ns,
                    frames,
                )
        return released

    def _log(self, *fields: Any) -> None:
        self.events.append(AllocatorEvent(*fields))

    def _reserve(self, size_bytes: int, ts_ns: int) -> None:
        self.reserved_bytes += size_bytes
        self.peak_reserved_bytes = max(self.peak_reserved_bytes, self.reserved_bytes)
        self.reserved_changes.append((ts_ns, self.reserved_bytes))

    def _best_fit(self, wanted: int, stream: int, *, small: bool) -> Block | None:
        free = self._free.get((stream, small), [])
        place = bisect.bisect_left(free, (wanted, 0))
        if place == len(free):
            return None
        block = self._free_blocks[free[place][1]]
        self._remove_free(block)
        return block

    def _new_segment(
        self, wanted: int, size_bytes: int, ts_ns: int, frames: Frames, stream: int
    ) -> Block:
        total = segment_size(wanted)
        if self.reserved_bytes + total > self.limit_bytes:
            self.release_cached(ts_ns, frames)
        if self.reserved_bytes + total > self.limit_bytes:
            self._log("oom", 0, size_bytes, stream, ts_ns, frames)
            raise OutOfMemoryError(
                f"the simulated device cannot give {size_bytes} bytes: "
                f"{self.reserved_bytes} of {self.limit_bytes} are reserved"
            )
        segment = Segment(self._next_address, total, stream, wanted <= SMALL_REQUEST_LIMIT, frames)
        self._next_address += -(-total // SMALL_SEGMENT) * SMALL_SEGMENT
        block = Block(segment.address, total, segment)
        segment.blocks.append(block)
        self.segments[segment.address] = segment
        self._reserve(total, ts_ns)
        self._log("segment_alloc", segment.address, total, stream, ts_ns, frames)
        return block

    def _split(self, block: Block, wanted: int) -> None:
        rest = block.size_bytes - wanted
        enough = rest >= SMALLEST_BLOCK if block.segment.small else rest > SMALL_REQUEST_LIMIT
        if not enough:
            return
        block.size_bytes = wanted
        tail = Block(block.address + wanted, rest, block.segment)
        blocks = block.segment.blocks
        blocks.insert(_place(blocks, block.address) + 1, tail)
        self._add_free(tail)

    def _merge(self, block: Block) -> None:
        blocks = block.segment.blocks
        place = _place(blocks, block.address)
        if place + 1 < len(blocks) and not blocks[place + 1].allocated:
            self._remove_free(blocks[place + 1])
            block.size_bytes += blocks.pop(place + 1).size_bytes
        if place and not blocks[place - 1].allocated:
            self._remove_free(blocks[place - 1])
            blocks[place - 1].size_bytes += block.size_bytes
            block = blocks[place - 1]
            del blocks[place]
        self._add_free(block)

    def _add_free(self, block: Block) -> None:
        pool = self._free.setdefault((block.segment.stream, block.segment.small), [])
        bisect.insort(pool, (block.size_bytes, block.address))
        self._free_blocks[block.address] = block

    def _remove_free(self, block: Block) -> None:
        pool = self._free[block.segment.stream, block.segment.small]
        pool.remove((block.size_bytes, block.address))
        del self._free_blocks[block.address]


def _place(blocks: list[Block], address: int) -> int:
    return bisect.bisect_left(blocks, address, key=lambda block: block.address)
