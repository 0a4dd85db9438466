"""Steps of the training loop."""

from __future__ import annotations

from maiprof_nb.tables.schema import Column, Schema

SCHEMA = Schema(
    name="steps",
    row="one `ProfilerStep#N` of the host",
    columns=(
        Column("event", "int64", "position of the event in its file, counted from 0"),
        Column("step", "int64", "N"),
        Column("ts_ns", "int64", "start, from the recording's time zero", "ns"),
        Column("dur_ns", "int64", "duration", "ns"),
        Column(
            "pid", "category", "process, as text (files write ints and strings for one process)"
        ),
        Column("tid", "category", "thread, as text"),
    ),
)
