"""Sampled quantities."""

from __future__ import annotations

from maiprof_nb.tables.columns import START
from maiprof_nb.tables.schema import Column, Schema

SCHEMA = Schema(
    name="counters",
    row="one sample of one quantity",
    columns=(
        Column(
            "event",
            "int64",
            "position of the sample in its file (event or data row), counted from 0",
        ),
        START,
        Column(
            "device",
            "category",
            "device the sample belongs to, as the source names it; missing for the host",
        ),
        Column("counter", "category", "name of the quantity as the source has it"),
        Column("unit", "category", "unit of the value"),
        Column("value", "float64", "the sample", "see unit"),
    ),
)
