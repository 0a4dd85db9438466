"""Memory snapshots of a few events, written by hand; one change of memory every microsecond."""

from __future__ import annotations

import pickle
from typing import Any

from maiprof_nb.loading import registry
from maiprof_nb.session import Session

KIB, MIB, GIB = 2**10, 2**20, 2**30
START_US = 1_700_000_000_000_000


def frames(*lines: str) -> list[dict[str, Any]]:
    """Frames such as ``forward (/job/model.py:10)``, innermost first."""
    found = []
    for text in lines:
        name, place = text.rstrip(")").split(" (")
        file, line = place.rsplit(":", 1)
        found.append({"name": name, "filename": file, "line": int(line)})
    return found


class Job:
    """Writes an allocator's log; sizes must be multiples of 512 B to stay as they are."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.live: dict[int, dict[str, Any]] = {}
        self._next = 0x10_0000

    def _event(self, action: str, size: int, **more: Any) -> None:
        time_us = START_US + len(self.events)
        self.events.append({"action": action, "size": size, "stream": 0, "time_us": time_us} | more)

    def _block(self, size: int, stack: list[dict[str, Any]]) -> int:
        address = self._next
        self._next += size
        self.live[address] = {
            "address": address, "size": size, "requested_size": size,
            "state": "active_allocated", "frames": stack,
        }  # fmt: skip
        return address

    def before(self, size: int) -> int:
        """Memory that was there before the log, without a stack."""
        return self._block(size, [])

    def take(self, size: int, *lines: str) -> int:
        stack = frames(*lines)
        address = self._block(size, stack)
        self._event("alloc", size, addr=address, frames=stack)
        return address

    def give(self, *addresses: int) -> None:
        for address in addresses:
            size = self.live.pop(address)["size"]
            self._event("free_requested", size, addr=address, frames=[])
            self._event("free_completed", size, addr=address, frames=[])

    def segment(self, action: str, size: int, *lines: str) -> None:
        self._event(action, size, addr=0x7F00_0000, frames=frames(*lines))

    def oom(self, size: int, device_free: int, *lines: str) -> None:
        self._event("oom", size, device_free=device_free, frames=frames(*lines))

    def session(self, *more: dict[str, Any]) -> Session:
        """A snapshot that ends with each live block in a segment of its own, and with `more`."""
        own = [segment(block["address"], block) for block in self.live.values()]
        return snapshot([*own, *more], self.events)


def block(size: int, *lines: str) -> dict[str, Any]:
    """A live block of a segment."""
    return {
        "size": size, "requested_size": size, "state": "active_allocated", "frames": frames(*lines)
    }  # fmt: skip


def hole(size: int) -> dict[str, Any]:
    """A free block of a segment."""
    return {"size": size, "requested_size": 0, "state": "inactive", "frames": []}


def segment(address: int, *blocks: dict[str, Any], expandable: bool = False) -> dict[str, Any]:
    """A segment cut into these blocks."""
    placed, at = [], address
    for one in blocks:
        placed.append(one | {"address": at})
        at += one["size"]
    used = sum(one["size"] for one in blocks if one["state"] != "inactive")
    return {
        "device": 0, "address": address, "total_size": at - address, "allocated_size": used,
        "active_size": used, "requested_size": used, "stream": 0, "segment_type": "large",
        "segment_pool_id": (0, 0), "is_expandable": expandable, "frames": [], "blocks": placed,
    }  # fmt: skip


def snapshot(segments: list[dict[str, Any]], events: list[dict[str, Any]] | None = None) -> Session:
    content = {"segments": segments, "device_traces": [events or []]}
    return Session([registry.read(pickle.dumps(content, protocol=4), "tiny.pickle")])


FORWARD = "forward (/job/model.py:10)"
KEPT = "train (/job/train.py:20)"


def training(steps: int, *, left: int = 0, stop: int | None = None, tooth: int = 64) -> Job:
    """Steps that take `tooth` MiB in four blocks and give them back, but `left` MiB each.

    After `stop` steps nothing more is left behind.
    """
    job = Job()
    job.take(100 * MIB, "__init__ (/job/model.py:5)")
    for step in range(steps):
        held = [job.take(tooth // 4 * MIB, FORWARD) for _ in range(4)]
        if left and (stop is None or step < stop):
            job.take(left * MIB, KEPT)
        else:
            job.give(job.take(MIB, KEPT))
        job.give(*held)
    return job
