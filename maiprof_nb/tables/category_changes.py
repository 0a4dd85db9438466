"""Memory by category, as the profiler's memory timeline has it."""

from __future__ import annotations

from maiprof_nb.tables.columns import START
from maiprof_nb.tables.schema import Column, Schema

SCHEMA = Schema(
    name="category_changes",
    row="one change of the memory in use by one category of tensors",
    columns=(
        Column("event", "int64", "position in the file (event or point of time), counted from 0"),
        START,
        Column(
            "category",
            "category",
            "what the tensors are, as the profiler found out: parameters, optimizer state, inputs, "
            "temporaries, activations, gradients, autograd details or unknown",
        ),
        Column("size_bytes", "int64", "bytes more (positive) or less (negative)", "B"),
        Column("before_log", "bool", "there before the first event"),
    ),
)
