"""Work on a device: kernels, copies and memsets."""

from __future__ import annotations

from maiprof_nb.tables.schema import Column, Schema

SCHEMA = Schema(
    name="kernels",
    row="one piece of device work",
    columns=(
        Column("event", "int64", "position of the event in its file, counted from 0"),
        Column("name", "category", "name as written in the file"),
        Column("kind", "category", "compute, communication, memcpy or memset"),
        Column("ts_ns", "int64", "start, from the recording's time zero", "ns"),
        Column("dur_ns", "int64", "duration", "ns"),
        Column("device", "Int64", "index of the device"),
        Column("stream", "Int64", "device queue the work ran on"),
        Column("external_id", "Int64", "id that ties launches and device work to the operator"),
        Column(
            "correlation",
            "Int64",
            "id of the launch call; a graph launch shares it among its kernels",
        ),
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
