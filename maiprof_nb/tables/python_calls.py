"""Python function calls."""

from __future__ import annotations

from maiprof_nb.tables.schema import Column, Schema

SCHEMA = Schema(
    name="python_calls",
    row="one call of a Python function (`python_function`)",
    columns=(
        Column("event", "int64", "position of the event in its file, counted from 0"),
        Column("name", "category", "name as written in the file"),
        Column("ts_ns", "int64", "start, from the recording's time zero", "ns"),
        Column("dur_ns", "int64", "duration", "ns"),
        Column(
            "pid", "category", "process, as text (files write ints and strings for one process)"
        ),
        Column("tid", "category", "thread, as text"),
        Column("python_id", "Int64", "id of this call"),
        Column("parent_id", "Int64", "id of the calling Python call"),
        Column("module_id", "Int64", "instance number of the nn.Module, for module calls"),
    ),
)
