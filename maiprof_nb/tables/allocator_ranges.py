"""Named ranges a memory snapshot carries."""

from __future__ import annotations

from maiprof_nb.tables.columns import DEVICE, DURATION, START
from maiprof_nb.tables.schema import Column, Schema

SCHEMA = Schema(
    name="allocator_ranges",
    row="one named range of a snapshot's `external_annotations`",
    columns=(
        Column("event", "int64", "position of its start in the snapshot, counted from 0"),
        Column("name", "category", "name as written"),
        START,
        DURATION,
        DEVICE,
    ),
)
