"""PyTorch's caching allocator on the simulated device, with the log it would have written."""

from __future__ import annotations

from dataclasses import dataclass

from maiprof_nb.allocator import MIB, AllocatorModel, Block, OutOfMemoryError, Segment

__all__ = ["MIB", "AllocatorEvent", "Block", "CachingAllocator", "Frames", "Segment"]

Frames = list[dict[str, object]]


@dataclass(frozen=True, slots=True)
class AllocatorEvent:
    """One entry of the allocator's log; `size_bytes` is as requested for alloc and free.

    Of a request that failed, `address` holds what the device still had to give.
    """

    action: str
    address: int
    size_bytes: int
    stream: int
    ts_ns: int
    frames: Frames


class CachingAllocator(AllocatorModel):
    """The allocator's rules with default settings; every change is logged, with time and stack.

    Parameters
    ----------
    limit_bytes : int
        What the device can give in all.
    """

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(limit_bytes=limit_bytes)
        self.peak_allocated_bytes = 0
        self.peak_ts_ns = 0
        self.events: list[AllocatorEvent] = []
        self.reserved_changes: list[tuple[int, int]] = []
        self._ts_ns = 0
        self._frames: Frames = []

    @property
    def device_free_bytes(self) -> int:
        """What the device can still give."""
        return (self.limit_bytes or 0) - self.reserved_bytes

    def allocate(self, size_bytes: int, ts_ns: int, frames: Frames, stream: int = 0) -> int:
        """Address of a block for `size_bytes` bytes.

        Raises
        ------
        OutOfMemoryError
            If the device cannot give them even after the cached segments were returned.
        """
        self._ts_ns, self._frames = ts_ns, frames
        try:
            block = self.place(size_bytes, stream)
        except OutOfMemoryError:
            self._log("oom", self.device_free_bytes, size_bytes, stream)
            raise
        block.frames = frames
        self._log("alloc", block.address, size_bytes, stream)
        if self.allocated_bytes > self.peak_allocated_bytes:
            self.peak_allocated_bytes, self.peak_ts_ns = self.allocated_bytes, ts_ns
        return block.address

    def free(self, address: int, ts_ns: int, frames: Frames) -> None:
        """Give back the block at `address`; neighbouring free blocks become one."""
        self._ts_ns, self._frames = ts_ns, frames
        block = self._live[address]
        for action in ("free_requested", "free_completed"):
            self._log(action, address, block.requested_bytes, block.segment.stream)
        self.give_up(address)

    def release_cached(self, ts_ns: int, frames: Frames) -> int:
        """Return wholly free segments to the device, as ``empty_cache`` does; their bytes."""
        self._ts_ns, self._frames = ts_ns, frames
        return self.return_cached()

    def moved(self, segment: Segment, address: int, size_bytes: int) -> None:
        """Log the segment that was taken or returned."""
        if size_bytes > 0:
            segment.frames = self._frames
        self.reserved_changes.append((self._ts_ns, self.reserved_bytes))
        action = "segment_alloc" if size_bytes > 0 else "segment_free"
        self._log(action, address, abs(size_bytes), segment.stream)

    def _log(self, action: str, address: int, size_bytes: int, stream: int) -> None:
        event = AllocatorEvent(action, address, size_bytes, stream, self._ts_ns, self._frames)
        self.events.append(event)
