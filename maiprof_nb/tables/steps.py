"""Steps of the training loop."""

from __future__ import annotations

from maiprof_nb.tables.columns import DURATION, EVENT, PROCESS, START, THREAD
from maiprof_nb.tables.schema import Column, Schema

SCHEMA = Schema(
    name="steps",
    row="one `ProfilerStep#N` of the host",
    columns=(
        EVENT,
        Column("step", "int64", "N"),
        START,
        DURATION,
        PROCESS,
        THREAD,
    ),
)
