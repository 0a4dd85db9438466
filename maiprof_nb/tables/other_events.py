"""Events no other table takes."""

from __future__ import annotations

from maiprof_nb.tables.schema import Column, Schema

SCHEMA = Schema(
    name="other_events",
    row="one event kept as it is: profiler overhead, device synchronisation, spans, instants, ...",
    columns=(
        Column("event", "int64", "position of the event in its file, counted from 0"),
        Column("phase", "category", "`ph` of the event"),
        Column("category", "category", "`cat` of the event; missing where the file has none"),
        Column("name", "category", "name as written in the file"),
        Column(
            "ts_ns",
            "Int64",
            "start, from the recording's time zero; missing where the event has none",
            "ns",
        ),
        Column("dur_ns", "Int64", "duration; missing for events that have none", "ns"),
        Column(
            "pid", "category", "process, as text (files write ints and strings for one process)"
        ),
        Column("tid", "category", "thread, as text"),
    ),
)
