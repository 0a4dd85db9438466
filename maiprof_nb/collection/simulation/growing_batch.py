"""A job whose batch grows until a request fails although enough memory is free, in pieces.

The batch is one sample larger in every epoch, and the last batch of an epoch one sample smaller
than its others. A layer's feature map lives until its step ends; in the last step of an epoch a
small part of each is copied and kept for a report. Such a copy fits the piece that the smaller
feature map left of its segment, and stays there when the step is over: so each segment is held
by one small block, and is too small for the feature maps of the next epoch.
"""

from __future__ import annotations

import json
from typing import Any

from maiprof_nb.allocator import MIB, OutOfMemoryError
from maiprof_nb.collection.simulation.allocator import Block, CachingAllocator, Frames
from maiprof_nb.collection.simulation.files import gzipped
from maiprof_nb.collection.simulation.memory_pickle import packed

DEVICE_MIB, CONTEXT_MIB = 8192, 448
LAYERS = 12
FIRST_BATCH, STEPS_AN_EPOCH = 4, 4
FEATURES_A_SAMPLE = 8 * MIB  # bytes of one layer's feature map
KEPT = 6 * MIB  # bytes of the part of it that is kept
PARAMETER = 24 * MIB
LAYER_NS, STEP_NS = 1_500_000, 4_000_000

_BASE = (("warmup/train.py", 88, "<module>"),)
_TRAIN = (("warmup/train.py", 61, "train"), *_BASE)
_LAYER = (("warmup/model.py", 34, "forward"), *_TRAIN)
STACKS = {
    "parameters": (("warmup/model.py", 17, "__init__"), ("warmup/train.py", 40, "build"), *_BASE),
    "optimizer": (("torch/optim/adamw.py", 168, "_init_group"), *_TRAIN),
    "features": (("warmup/model.py", 29, "block"), *_LAYER),
    "kept": (("warmup/report.py", 12, "remember"), *_LAYER),
}


class GrowingBatch:
    """The job, run until a request fails; `truth` is what was known when it did."""

    name = "oom"

    def __init__(self) -> None:
        self.allocator = CachingAllocator((DEVICE_MIB - CONTEXT_MIB) * MIB)
        self.truth: dict[str, Any] = {}
        self._ns = 0
        self._frames = {
            name: [{"filename": file, "line": line, "name": of} for file, line, of in stack]
            for name, stack in STACKS.items()
        }
        self._marks: list[dict[str, Any]] = []

    def run(self) -> GrowingBatch:
        """Build the model, then train with ever larger batches."""
        for name, each in (("parameters", 1), ("optimizer", 2)):
            for _ in range(each * LAYERS):
                self._take(PARAMETER, name)
        step = 0
        while not self.truth:
            epoch, turn = divmod(step, STEPS_AN_EPOCH)
            last = turn == STEPS_AN_EPOCH - 1
            self._step(step, FIRST_BATCH + epoch - last, last=last)
            step += 1
        return self

    def files(self) -> dict[str, bytes]:
        """Snapshot and truth by their file names."""
        known = json.dumps(self.truth, indent=1)
        simulated = {
            "scenario": self.name,
            "seed": 0,
            "change": "batch grows until a request fails",
        }
        return {
            "memory.pickle.gz": gzipped(packed(self.allocator, simulated, [])),
            "truth.json": f"{known}\n".encode(),
        }

    def _step(self, step: int, batch: int, *, last: bool) -> None:
        live = []
        for layer in range(LAYERS):
            asked = batch * FEATURES_A_SAMPLE
            try:
                live.append(self._take(asked, "features"))
            except OutOfMemoryError:
                self.truth = self._known(step, batch, layer, asked)
                return
            if last:
                self._take(KEPT, "kept")
            self._ns += LAYER_NS
        for address in reversed(live):
            self._ns += LAYER_NS
            self.allocator.free(address, self._ns, self._frames["features"])
        self._ns += STEP_NS

    def _take(self, size_bytes: int, what: str) -> int:
        self._ns += 1000
        return self.allocator.allocate(size_bytes, self._ns, self._frames[what])

    def _known(self, step: int, batch: int, layer: int, asked: int) -> dict[str, Any]:
        """The allocator's state as it stood when the request failed."""
        allocator = self.allocator
        blocks = [block for of in allocator.segments.values() for block in of.blocks]
        free = [block.size_bytes for block in blocks if not block.allocated]
        return {
            "simulated": True,
            "scenario": self.name,
            "step": step,
            "batch": batch,
            "layer": layer,
            "bytes_per_sample": LAYERS * FEATURES_A_SAMPLE,
            "requested_bytes": asked,
            "device_bytes": allocator.limit_bytes,
            "device_free_bytes": allocator.device_free_bytes,
            "reserved_bytes": allocator.reserved_bytes,
            "allocated_bytes": allocator.allocated_bytes,
            "largest_hole_bytes": max(free),
            "holes": len(free),
            "free_in_holes_bytes": sum(free),
            "fits_after_defragmentation_bytes": sum(free) + allocator.device_free_bytes,
            "held_open_by": _lines(STACKS["kept"]),
            "kept_bytes_per_epoch": LAYERS * KEPT,
            "blocks_of_it": sum(_made_by(block, self._frames["kept"]) for block in blocks),
        }


def _made_by(block: Block, frames: Frames) -> bool:
    return block.allocated and block.frames is frames


def _lines(stack: tuple[tuple[str, int, str], ...]) -> list[str]:
    return [f"{file}:{line} {function}" for file, line, function in stack]
