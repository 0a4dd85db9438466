"""Events no other table takes."""

from __future__ import annotations

from maiprof_nb.tables.columns import EVENT, NAME, PROCESS, THREAD
from maiprof_nb.tables.schema import Column, Schema

SCHEMA = Schema(
    name="other_events",
    row="one event kept as it is: profiler overhead, device synchronisation, spans, instants, ...",
    columns=(
        EVENT,
        Column("phase", "category", "`ph` of the event"),
        Column("category", "category", "`cat` of the event; missing where the file has none"),
        NAME,
        Column(
            "ts_ns",
            "Int64",
            "start, from the recording's time zero; missing where the event has none",
            "ns",
        ),
        Column("dur_ns", "Int64", "duration; missing for events that have none", "ns"),
        PROCESS,
        THREAD,
    ),
)
