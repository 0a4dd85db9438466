"""Memory taken from the device."""

from __future__ import annotations

from maiprof_nb.tables.schema import Column, Schema

SCHEMA = Schema(
    name="segments",
    row="one segment the caching allocator held when the snapshot was taken",
    columns=(
        Column("segment", "int64", "position in the snapshot, counted from 0"),
        Column("device", "int64", "index of the device"),
        Column("address", "int64", "address on the device"),
        Column("size_bytes", "int64", "size", "B"),
        Column("allocated_bytes", "int64", "in live blocks (rounded sizes)", "B"),
        Column("active_bytes", "int64", "in live blocks and blocks waiting to be freed", "B"),
        Column("requested_bytes", "Int64", "as asked for by the program", "B"),
        Column("stream", "int64", "stream it was taken for (a pointer value, 0 = default)"),
        Column("pool", "category", "small or large"),
        Column(
            "pool_id",
            "category",
            "private pool as text, `(0, 0)` = default; missing in old snapshots",
        ),
        Column("expandable", "bool", "grows in place (expandable_segments)"),
    ),
)
