"""Names of processes and threads."""

from __future__ import annotations

from maiprof_nb.tables.schema import Column, Schema

SCHEMA = Schema(
    name="track_labels",
    row="one metadata event (`M`) that names or sorts a process or thread",
    columns=(
        Column("event", "int64", "position of the event in its file, counted from 0"),
        Column(
            "pid", "category", "process, as text (files write ints and strings for one process)"
        ),
        Column("tid", "category", "thread, as text"),
        Column("label", "category", "what is said: process_name, thread_name, sort_index, ..."),
        Column("text", "category", "the value, as text"),
    ),
)
