"""Lives of blocks."""

from __future__ import annotations

from maiprof_nb.tables.schema import Column, Schema

SCHEMA = Schema(
    name="allocations",
    row="one allocation from its alloc to its completed free",
    columns=(
        Column("allocation", "int64", "row id: log order, those from before the log first"),
        Column("device", "int64", "index of the device"),
        Column("address", "int64", "address on the device"),
        Column("stream", "int64", "stream (a pointer value, 0 = default)"),
        Column(
            "size_bytes",
            "int64",
            "size as it counts in allocated memory: rounded, and where a large block was not split "
            "with what is behind it",
            "B",
        ),
        Column("requested_bytes", "Int64", "as asked for by the program", "B"),
        Column(
            "ts_ns",
            "int64",
            "time of the alloc; the log's first moment for those made before it",
            "ns",
        ),
        Column(
            "end_ns", "Int64", "time of the completed free; missing while it lives at the end", "ns"
        ),
        Column("alloc_event", "Int64", "row id in `allocator_events`; missing where not logged"),
        Column(
            "free_requested_event",
            "Int64",
            "event that asked for the free; missing where none did, or none completed is logged",
        ),
        Column(
            "free_event",
            "Int64",
            "event of the completed free, or of the alloc that took the address over",
        ),
        Column("before_log", "bool", "made before the log begins"),
        Column("stack", "Int64", "row id in `stacks`"),
    ),
)
