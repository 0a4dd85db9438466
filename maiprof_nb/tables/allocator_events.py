"""The allocator's own log."""

from __future__ import annotations

from maiprof_nb.tables.schema import Column, Schema

SCHEMA = Schema(
    name="allocator_events",
    row="one event of the caching allocator, oldest first",
    columns=(
        Column("event", "int64", "position in the snapshot, counted from 0 over all devices"),
        Column(
            "ts_ns",
            "int64",
            "from the recording's time zero; the event's number where there are no times",
            "ns",
        ),
        Column("device", "int64", "index of the device"),
        Column(
            "action",
            "category",
            "alloc, free_requested, free_completed, segment_alloc, segment_free, segment_map, "
            "segment_unmap, oom, snapshot",
        ),
        Column("address", "Int64", "address on the device; missing for oom and snapshot"),
        Column(
            "size_bytes",
            "int64",
            "bytes as requested (alloc, free, oom), of the segment, or in use (snapshot)",
            "B",
        ),
        Column("stream", "int64", "stream (a pointer value, 0 = default)"),
        Column("device_free_bytes", "Int64", "free on the device, for oom only", "B"),
        Column("stack", "Int64", "row id in `stacks`"),
    ),
)
