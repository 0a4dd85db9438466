"""Snapshots written from the model of the allocator, with what was true at each event."""

from __future__ import annotations

import pickle
from typing import Any

from maiprof_nb.allocator import AllocatorModel, AllocatorSettings, Segment
from maiprof_nb.loading import registry
from maiprof_nb.session import Session

Row = dict[str, Any]


class LoggedAllocator(AllocatorModel):
    """Writes the log PyTorch would; `states` holds (address, size, in use) after each event."""

    def __init__(self, settings: AllocatorSettings | None = None, **options: Any) -> None:
        super().__init__(settings, **options)
        self.events: list[Row] = []
        self.states: dict[int, list[tuple[int, int, bool]]] = {}

    def alloc(self, size_bytes: int, stream: int = 0, name: str = "f") -> int:
        block = self.place(size_bytes, stream)
        block.frames = [{"name": name, "filename": "/job/train.py", "line": 1}]
        self._event("alloc", block.address, size_bytes, stream, block.frames)
        return block.address

    def free(self, address: int) -> None:
        block = self._live[address]
        for action in ("free_requested", "free_completed"):
            self._event(action, address, block.requested_bytes, block.segment.stream)
        self.give_up(address)
        self._seen()

    def moved(self, segment: Segment, address: int, size_bytes: int) -> None:
        kind = ("map", "unmap") if segment.expandable else ("alloc", "free")
        self._event(f"segment_{kind[size_bytes < 0]}", address, abs(size_bytes), segment.stream)

    def session(self, skip: int = 0) -> Session:
        """What a ring buffer would have kept after `skip` events were overwritten."""
        content = {
            "segments": [part for s in self.segments.values() for part in _parts(s)],
            "device_traces": [self.events[skip:]],
            "allocator_settings": {"expandable_segments": self.settings.expandable},
        }
        return Session([registry.read(pickle.dumps(content, protocol=4), "made.pickle")])

    def _event(self, action: str, addr: int, size: int, stream: int, frames: Any = ()) -> None:
        row = {"action": action, "addr": addr, "size": size, "stream": stream}
        self.events.append(row | {"time_us": len(self.events), "frames": list(frames)})
        if action == "alloc":
            self._seen()

    def _seen(self) -> None:
        blocks = [b for s in self.segments.values() for b in s.blocks if b.mapped]
        found = sorted((b.address, b.size_bytes, b.allocated) for b in blocks)
        self.states[len(self.events)] = found


def _parts(segment: Segment) -> list[Row]:
    """The segment, or each mapped stretch of an expandable one."""
    made: list[list[Any]] = [[]]
    for block in segment.blocks:
        if block.mapped:
            made[-1].append(block)
        else:
            made.append([])
    return [_row(segment, blocks) for blocks in made if blocks]


def _row(segment: Segment, blocks: list[Any]) -> Row:
    used = sum(block.size_bytes for block in blocks if block.allocated)
    return {
        "device": 0,
        "address": blocks[0].address,
        "total_size": sum(block.size_bytes for block in blocks),
        "allocated_size": used,
        "active_size": used,
        "requested_size": sum(block.requested_bytes for block in blocks if block.allocated),
        "stream": segment.stream,
        "segment_type": "small" if segment.small else "large",
        "segment_pool_id": (0, 0),
        "is_expandable": segment.expandable,
        "frames": [],
        "blocks": [
            {
                "address": block.address,
                "size": block.size_bytes,
                "requested_size": block.requested_bytes,
                "state": "active_allocated" if block.allocated else "inactive",
                "frames": block.frames,
            }
            for block in blocks
        ],
    }
