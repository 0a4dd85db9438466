"""Work on a device: kernels, copies and memsets."""

from __future__ import annotations

from maiprof_nb.tables.columns import (
    CORRELATION,
    DEVICE,
    DURATION,
    EVENT,
    EXTERNAL_ID,
    NAME,
    START,
    STREAM,
)
from maiprof_nb.tables.schema import Column, Schema

SCHEMA = Schema(
    name="kernels",
    row="one piece of device work",
    columns=(
        EVENT,
        NAME,
        Column("kind", "category", "compute, communication, memcpy or memset"),
        START,
        DURATION,
        DEVICE,
        STREAM,
        EXTERNAL_ID,
        CORRELATION,
        Column("size_bytes", "Int64", "bytes moved or set, for memcpy and memset", "B"),
        Column("blocks_per_sm", "Float64", "grid blocks per multiprocessor, as Kineto computed it"),
        Column(
            "est_occupancy_pct",
            "Float64",
            "achieved occupancy as Kineto estimated it; not a measurement",
            "%",
        ),
        Column("grid", "category", "blocks of the grid, as `[x, y, z]`, if recorded"),
        Column("block", "category", "threads of a block, as `[x, y, z]`, if recorded"),
        Column("registers", "Int64", "registers a thread"),
        Column("shared_memory_bytes", "Int64", "shared memory a block", "B"),
    ),
)
