"""Pieces of segments."""

from __future__ import annotations

from maiprof_nb.tables.schema import Column, Schema

SCHEMA = Schema(
    name="blocks",
    row="one block of a segment when the snapshot was taken",
    columns=(
        Column("block", "int64", "position in the snapshot, counted from 0"),
        Column("segment", "int64", "row id of its segment"),
        Column("device", "int64", "index of the device"),
        Column("address", "int64", "address on the device"),
        Column("size_bytes", "int64", "rounded size", "B"),
        Column("requested_bytes", "Int64", "as asked for by the program", "B"),
        Column("state", "category", "allocated, pending_free or inactive"),
        Column("stack", "Int64", "row id in `stacks`"),
    ),
)
