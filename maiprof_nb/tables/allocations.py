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
        Column("size_bytes", "int64", "rounded size as it counts in allocated memory", "B"),
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
        Column("before_log", "bool", "made before the log begins"),
        Column("stack", "Int64", "row id in `stacks`"),
    ),
)
