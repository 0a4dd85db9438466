"""A run as the memory snapshot that PyTorch 2.11 would have dumped at its end."""

from __future__ import annotations

import pickle
import sys
from typing import Any

from maiprof_nb.collection.simulation.allocator import AllocatorEvent, CachingAllocator, Segment
from maiprof_nb.collection.simulation.training import EPOCH_NS, Run

_POOL = (0, 0)
_FULL_LOG = 1_000_000
_SETTINGS: dict[str, Any] = {
    "PYTORCH_CUDA_ALLOC_CONF": "",
    "max_split_size": -1,
    "garbage_collection_threshold": 0.0,
    "expandable_segments": False,
    "pinned_num_register_threads": 1,
    "release_lock_on_cudamalloc": False,
    "pinned_use_cuda_host_register": False,
    "graph_capture_record_stream_reuse": False,
    "roundup_power2_divisions": {str(2**power): 0 for power in range(16)},
}


def snapshot_pickle(run: Run) -> bytes:
    """The snapshot of a run, as `packed` gives it."""
    simulated = {
        "scenario": run.scenario.name,
        "seed": run.scenario.seed,
        "change": run.scenario.change,
    }
    return packed(run.machine.allocator, simulated, _annotations(run))


def packed(
    allocator: CachingAllocator, simulated: dict[str, Any], annotations: list[dict[str, Any]]
) -> bytes:
    """A snapshot, protocol 4; nothing in it but dict, list, tuple, str, int, float and bool.

    Equal strings are one object, so that the bytes do not depend on what Python shares.
    """
    if len(allocator.events) > _FULL_LOG:
        raise ValueError("the log would not fit the ring it claims to come from")
    snapshot = {
        "segments": [_segment(allocator.segments[at]) for at in sorted(allocator.segments)],
        "device_traces": [[_event(event) for event in allocator.events]],
        "allocator_settings": _SETTINGS,
        "external_annotations": annotations,
        "simulated": {"by": "maiprof_nb"} | simulated,
    }
    return pickle.dumps(_shared(snapshot, {}), protocol=4)


def _time_us(ts_ns: int) -> int:
    return (EPOCH_NS + ts_ns) // 1000


def _segment(segment: Segment) -> dict[str, Any]:
    used = [block for block in segment.blocks if block.allocated]
    allocated = sum(block.size_bytes for block in used)
    return {
        "device": 0,
        "address": segment.address,
        "total_size": segment.size_bytes,
        "allocated_size": allocated,
        "active_size": allocated,
        "requested_size": sum(block.requested_bytes for block in used),
        "stream": segment.stream,
        "segment_type": "small" if segment.small else "large",
        "segment_pool_id": _POOL,
        "is_expandable": False,
        "frames": segment.frames,
        "blocks": [
            {
                "address": block.address,
                "size": block.size_bytes,
                "requested_size": block.requested_bytes,
                "state": "active_allocated" if block.allocated else "inactive",
                "frames": block.frames,
            }
            for block in segment.blocks
        ],
    }


def _event(event: AllocatorEvent) -> dict[str, Any]:
    return {
        "action": event.action,
        "device_free" if event.action == "oom" else "addr": event.address,
        "size": event.size_bytes,
        "stream": event.stream,
        "time_us": _time_us(event.ts_ns),
        "compile_context": "N/A",
        "user_metadata": "",
        "frames": event.frames,
    }


def _annotations(run: Run) -> list[dict[str, Any]]:
    marks: list[tuple[int, int, str, str]] = []
    for event in run.machine.host_events:
        if event.category == "user_annotation":
            marks.append((event.start_ns, len(marks), "START", event.name))
            marks.append((event.end_ns, -len(marks), "END", event.name))
    return [
        {"stage": stage, "name": name, "device": 0, "time_us": _time_us(ts_ns)}
        for ts_ns, _, stage, name in sorted(marks)
    ]


def _shared(value: Any, seen: dict[int, Any]) -> Any:
    """The same data with every string interned; lists that were one object stay one."""
    if isinstance(value, str):
        return sys.intern(value)
    if isinstance(value, (dict, list)):
        if id(value) not in seen:
            seen[id(value)] = (
                {sys.intern(key): _shared(item, seen) for key, item in value.items()}
                if isinstance(value, dict)
                else [_shared(item, seen) for item in value]
            )
        return seen[id(value)]
    return value
