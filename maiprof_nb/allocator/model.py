"""The caching allocator of one device: where each request goes."""

from __future__ import annotations

import bisect
from collections.abc import Iterable

from maiprof_nb.allocator.blocks import Block, PoolKey, Segment, cut, joined, room, stretch
from maiprof_nb.allocator.rules import (
    DEFAULT_POOL,
    LARGE_SEGMENT,
    SMALL_REQUEST_LIMIT,
    SMALL_SEGMENT,
    SMALLEST_BLOCK,
    UNSPLIT_ROUNDING,
    AllocatorSettings,
    rounded,
    segment_size,
)
from maiprof_nb.errors import MaiprofError

_ADDRESS_SPACE = 2**38  # of an expandable segment; reserving it takes no memory


class OutOfMemoryError(MaiprofError):
    """The device cannot give the bytes that were asked for."""


class AllocatorModel:
    """Where requests go, and what is taken from the device for them.

    Parameters
    ----------
    settings : AllocatorSettings, optional
        The defaults of PyTorch where not given.
    limit_bytes : int, optional
        What the device can give in all; no limit by default.
    first_address : int
        Address of the first new segment.
    """

    def __init__(
        self,
        settings: AllocatorSettings | None = None,
        *,
        limit_bytes: int | None = None,
        first_address: int = 0x7F00_0000_0000,
    ) -> None:
        self.settings = settings or AllocatorSettings()
        self.limit_bytes = limit_bytes
        self.reserved_bytes = 0
        self.allocated_bytes = 0
        self.requested_bytes = 0
        self.peak_reserved_bytes = 0
        self.segments: dict[int, Segment] = {}
        self._live: dict[int, Block] = {}
        self._free: dict[PoolKey, list[tuple[int, int]]] = {}
        self._free_blocks: dict[int, Block] = {}
        self._growing: dict[PoolKey, Segment] = {}
        self._next_address = first_address

    def place(self, size_bytes: int, stream: int = 0, pool_id: str = DEFAULT_POOL) -> Block:
        """The block for a request of `size_bytes`.

        Raises
        ------
        OutOfMemoryError
            If the device cannot give them even after the free segments were returned.
        """
        wanted = rounded(size_bytes, self.settings)
        key = stream, wanted <= SMALL_REQUEST_LIMIT, pool_id
        block = self._best_fit(wanted, key)
        if block is None:
            grows = self.settings.expandable
            block = self._grown(wanted, key) if grows else self._new_segment(wanted, key)
        if self._splits(block, wanted):
            self._add_free(cut(block, wanted))
        block.allocated, block.requested_bytes = True, size_bytes
        self._live[block.address] = block
        self.allocated_bytes += block.size_bytes
        self.requested_bytes += size_bytes
        return block

    def give_up(self, address: int) -> None:
        """Free the block at `address`; neighbouring free blocks become one."""
        block = self._live.pop(address)
        self.allocated_bytes -= block.size_bytes
        self.requested_bytes -= block.requested_bytes
        block.allocated, block.frames = False, []
        self._add_free(self._merged(block))

    def return_cached(self) -> int:
        """Return what is free to the device, as ``empty_cache`` does; the bytes of it."""
        before = self.reserved_bytes
        for segment in list(self.segments.values()):
            if segment.expandable:
                for block in [found for found in segment.blocks if found.free]:
                    self._unmap(block)
            elif segment.wholly_free:
                self._remove_free(segment.first)
                del self.segments[segment.address]
                self._account(segment, segment.address, -segment.size_bytes)
        return before - self.reserved_bytes

    def adopt(self, segment: Segment, used: Iterable[tuple[int, int, int]]) -> None:
        """Start with a segment that is there already.

        Parameters
        ----------
        segment : Segment
            One whole free block so far.
        used : iterable of (int, int, int)
            Address, size and requested bytes of each block in use, in address order.
        """
        self.segments[segment.address] = segment
        rest = segment.first
        for address, size_bytes, requested in used:
            block = rest if address == rest.address else cut(rest, address - rest.address)
            if block is not rest:
                self._add_free(rest)
            rest = block
            if block.size_bytes > size_bytes:
                rest = cut(block, size_bytes)
            block.allocated, block.requested_bytes = True, requested
            self._live[address] = block
            self.allocated_bytes += size_bytes
            self.requested_bytes += requested
        if not rest.allocated:
            self._add_free(rest)
        if segment.expandable:
            self._growing.setdefault(segment.key, segment)
            last = segment.blocks[-1]
            tail = Block(last.address + last.size_bytes, _ADDRESS_SPACE, segment, before=last)
            tail.mapped, last.after = False, tail
        self._account(segment, segment.address, segment.size_bytes)

    def moved(self, segment: Segment, address: int, size_bytes: int) -> None:
        """Called after bytes were taken from the device (positive) or returned (negative)."""

    def new_address(self, size_bytes: int) -> int:
        """Address of a new segment."""
        address = self._next_address
        self._next_address += -(-size_bytes // SMALL_SEGMENT) * SMALL_SEGMENT
        return address

    def _account(self, segment: Segment, address: int, size_bytes: int) -> None:
        self.reserved_bytes += size_bytes
        self.peak_reserved_bytes = max(self.peak_reserved_bytes, self.reserved_bytes)
        self.moved(segment, address, size_bytes)

    def _require(self, size_bytes: int) -> None:
        limit = self.limit_bytes
        if limit is None or self.reserved_bytes + size_bytes <= limit:
            return
        self.return_cached()
        if self.reserved_bytes + size_bytes > limit:
            raise OutOfMemoryError(
                f"the device cannot give {size_bytes} bytes more: "
                f"{self.reserved_bytes} of {limit} are reserved"
            )

    def _best_fit(self, wanted: int, key: PoolKey) -> Block | None:
        free = self._free.get(key, [])
        place = bisect.bisect_left(free, (wanted, 0))
        if place == len(free):
            return None
        block = self._free_blocks[free[place][1]]
        # a block at the end of what is mapped counts with the room it can grow into
        while block.segment.expandable and place + 1 < len(free):
            following = self._free_blocks[free[place + 1][1]]
            if room(following) >= room(block):
                break
            place, block = place + 1, following
        limit = self.settings.max_split_bytes
        if limit is not None:
            if wanted < limit <= block.size_bytes:
                return None
            if wanted >= limit and block.size_bytes >= wanted + UNSPLIT_ROUNDING:
                return None
        self._remove_free(block)
        return block

    def _splits(self, block: Block, wanted: int) -> bool:
        rest = block.size_bytes - wanted
        if block.segment.small or self.settings.expandable:
            return rest >= SMALLEST_BLOCK
        limit = self.settings.max_split_bytes
        return rest > SMALL_REQUEST_LIMIT and (limit is None or wanted < limit)

    def _new_segment(self, wanted: int, key: PoolKey) -> Block:
        stream, small, pool_id = key
        total = segment_size(wanted)
        self._require(total)
        segment = Segment(self.new_address(total), total, stream, small, pool_id=pool_id)
        self.segments[segment.address] = segment
        self._account(segment, segment.address, total)
        return segment.first

    def _grown(self, wanted: int, key: PoolKey) -> Block:
        """A free block of an expandable segment, with more mapped behind or before it."""
        while True:
            start = self._room_for(wanted, key)
            room = start.size_bytes if start.mapped else 0
            lacking = start if not start.mapped else start.after
            if room >= wanted:
                self._remove_free(start)
                return start
            assert lacking is not None  # noqa: S101 - _room_for found room
            reserved = self.reserved_bytes
            step = SMALL_SEGMENT if key[1] else LARGE_SEGMENT
            size = min(-(-(wanted - room) // step) * step, lacking.size_bytes)
            self._require(size)
            if self.reserved_bytes < reserved:
                continue  # what was free may be gone
            self._map(lacking, size)

    def _room_for(self, wanted: int, key: PoolKey) -> Block:
        segment = self._growing.get(key)
        if segment is None:
            stream, small, pool_id = key
            address = self.new_address(_ADDRESS_SPACE)
            segment = Segment(address, _ADDRESS_SPACE, stream, small, pool_id=pool_id)
            segment.expandable, segment.size_bytes = True, 0
            segment.first.mapped = False
            self._growing[key] = self.segments[address] = segment
        unmapped = [block for block in segment.blocks if not block.mapped]
        for block in sorted(unmapped, key=lambda found: (found.size_bytes, found.address)):
            before = block.before
            start = before if before is not None and before.free else block
            if stretch(start, wanted) >= wanted:
                return start
        raise OutOfMemoryError("the address space of an expandable segment is used up")

    def _map(self, block: Block, size_bytes: int) -> None:
        if size_bytes < block.size_bytes:
            cut(block, size_bytes).mapped = False
        block.mapped = True
        block.segment.size_bytes += size_bytes
        address = block.address
        self._add_free(self._merged(block))
        self._account(block.segment, address, size_bytes)

    def _unmap(self, block: Block) -> None:
        """Return the whole steps within a free block."""
        segment = block.segment
        step = SMALL_SEGMENT if segment.small else LARGE_SEGMENT
        start = -(-(block.address - segment.address) // step) * step
        end = (block.address + block.size_bytes - segment.address) // step * step
        if end <= start:
            return
        self._remove_free(block)
        if segment.address + end < block.address + block.size_bytes:
            self._add_free(cut(block, segment.address + end - block.address))
        if segment.address + start > block.address:
            rest = cut(block, segment.address + start - block.address)
            self._add_free(block)
            block = rest
        block.mapped = False
        segment.size_bytes -= block.size_bytes
        address, size_bytes = block.address, block.size_bytes
        joined(block, lambda other: not other.mapped)
        self._account(segment, address, -size_bytes)

    def _merged(self, block: Block) -> Block:
        for neighbour in (block.before, block.after):
            if neighbour is not None and neighbour.free:
                self._remove_free(neighbour)
        return joined(block, lambda other: other.free)

    def _add_free(self, block: Block) -> None:
        pool = self._free.setdefault(block.segment.key, [])
        bisect.insort(pool, (block.size_bytes, block.address))
        self._free_blocks[block.address] = block

    def _remove_free(self, block: Block) -> None:
        pool = self._free[block.segment.key]
        del pool[bisect.bisect_left(pool, (block.size_bytes, block.address))]
        del self._free_blocks[block.address]
