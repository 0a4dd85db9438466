"""Host calls that start or await device work."""

from __future__ import annotations

from maiprof_nb.tables.schema import Column, Schema

SCHEMA = Schema(
    name="launches",
    row="one runtime or driver call of the host (`cuda_runtime`, `cuda_driver`)",
    columns=(
        Column("event", "int64", "position of the event in its file, counted from 0"),
        Column("name", "category", "name as written in the file"),
        Column("ts_ns", "int64", "start, from the recording's time zero", "ns"),
        Column("dur_ns", "int64", "duration", "ns"),
        Column(
            "pid", "category", "process, as text (files write ints and strings for one process)"
        ),
        Column("tid", "category", "thread, as text"),
        Column("external_id", "Int64", "id that ties launches and device work to the operator"),
        Column(
            "correlation",
            "Int64",
            "id of the launch call; a graph launch shares it among its kernels",
        ),
    ),
)
