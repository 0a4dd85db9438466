"""Names of processes and threads."""

from __future__ import annotations

from maiprof_nb.tables.columns import EVENT, PROCESS, THREAD
from maiprof_nb.tables.schema import Column, Schema

SCHEMA = Schema(
    name="track_labels",
    row="one metadata event (`M`) that names or sorts a process or thread",
    columns=(
        EVENT,
        PROCESS,
        THREAD,
        Column("label", "category", "what is said: process_name, thread_name, sort_index, ..."),
        Column("text", "category", "the value, as text"),
    ),
)
