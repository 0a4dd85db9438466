"""Snapshots written from the model of the allocator, with what was true at each event."""

from __future__ import annotations

import pickle
from ast import literal_eval
from typing import Any

from maiprof_nb.allocator import DEFAULT_POOL, AllocatorModel, AllocatorSettings, Segment
from maiprof_nb.loading import registry
from maiprof_nb.session import Session

Row = dict[str, Any]


class LoggedAllocator(AllocatorModel):
    """Writes the log PyTorch would; `states` holds (address, size, in use) after each event."""

    def __init__(self, settings: AllocatorSettings | None = None, **options: Any) -> None:
        super().__init__(settings, **options)
        self.events: list[Row] = []
        self.waiting: set[int] = set()
        self.states: dict[int, list[tuple[int, int, bool]]] = {}

    def alloc(
        self, size_bytes: int, stream: int = 0, name: str = "f", pool: str = DEFAULT_POOL
    ) -> int:
        block = self.place(size_bytes, stream, pool)
        block.frames = [{"name": name, "filename": "/job/train.py", "line": 1}]
        self._event("alloc", block.address, size_bytes, stream, block.frames)
        return block.address

    def free(self, address: int) -> None:
        self.request_free(address)
        self.complete_free(address)

    def request_free(self, address: int) -> None:
        """As when another stream still uses the block: nothing is free yet."""
        block = self._live[address]
        self._event("free_requested", address, block.requested_bytes, block.segment.stream)
        self.waiting.add(address)

    def complete_free(self, address: int) -> None:
        block = self._live[address]
        self._event("free_completed", address, block.requested_bytes, block.segment.stream)
        self.waiting.discard(address)
        self.give_up(address)
        self._seen()

    def moved(self, segment: Segment, address: int, size_bytes: int) -> None:
        kind = ("map", "unmap") if segment.expandable else ("alloc", "free")
        self._event(f"segment_{kind[size_bytes < 0]}", address, abs(size_bytes), segment.stream)

    def parts(self, device: int = 0) -> list[Row]:
        """The segments as the snapshot would have them."""
        found = [part for s in self.segments.values() for part in _parts(s, self.waiting)]
        return [part | {"device": device} for part in found]

    def session(self, skip: int = 0, without: tuple[str, ...] = ()) -> Session:
        """What a ring buffer would have kept after `skip` events were overwritten.

        `without` are actions that were not recorded at all (``skip_actions``).
        """
        log = [row for row in self.events[skip:] if row["action"] not in without]
        return snapshot_of([self], [log])

    def _event(self, action: str, addr: int, size: int, stream: int, frames: Any = ()) -> None:
        row = {"action": action, "addr": addr, "size": size, "stream": stream}
        self.events.append(row | {"time_us": len(self.events), "frames": list(frames)})
        if action == "alloc":
            self._seen()

    def _seen(self) -> None:
        self.states[len(self.events)] = self.now()

    def now(self) -> list[tuple[int, int, bool]]:
        """Every block as it is: address, size, in use."""
        blocks = [b for s in self.segments.values() for b in s.blocks if b.mapped]
        return sorted((b.address, b.size_bytes, b.allocated) for b in blocks)


def snapshot_of(devices: list[LoggedAllocator], logs: list[list[Row]]) -> Session:
    """The snapshot of several devices, each with its log."""
    expandable = any(one.settings.expandable for one in devices)
    content = {
        "segments": [part for number, one in enumerate(devices) for part in one.parts(number)],
        "device_traces": logs,
        "allocator_settings": {"expandable_segments": expandable},
    }
    return Session([registry.read(pickle.dumps(content, protocol=4), "made.pickle")])


def _parts(segment: Segment, waiting: set[int]) -> list[Row]:
    """The segment, or each mapped stretch of an expandable one."""
    made: list[list[Any]] = [[]]
    for block in segment.blocks:
        if block.mapped:
            made[-1].append(block)
        else:
            made.append([])
    return [_row(segment, blocks, waiting) for blocks in made if blocks]


def _state(block: Any, waiting: set[int]) -> str:
    if block.address in waiting:
        return "active_pending_free"
    return "active_allocated" if block.allocated else "inactive"


def _row(segment: Segment, blocks: list[Any], waiting: set[int]) -> Row:
    active = sum(block.size_bytes for block in blocks if block.allocated)
    late = sum(block.size_bytes for block in blocks if block.address in waiting)
    return {
        "device": 0,
        "address": blocks[0].address,
        "total_size": sum(block.size_bytes for block in blocks),
        "allocated_size": active - late,
        "active_size": active,
        "requested_size": sum(block.requested_bytes for block in blocks if block.allocated),
        "stream": segment.stream,
        "segment_type": "small" if segment.small else "large",
        "segment_pool_id": literal_eval(segment.pool_id),
        "is_expandable": segment.expandable,
        "frames": [],
        "blocks": [
            {
                "address": block.address,
                "size": block.size_bytes,
                "requested_size": block.requested_bytes,
                "state": _state(block, waiting),
                "frames": block.frames,
            }
            for block in blocks
        ],
    }
