"""The tables of a recording: one module a table, gathered in ``SCHEMAS``."""

# No `from __future__ import annotations` here: the name would hide the table of that name.
from maiprof_nb.tables import (
    allocations,
    allocator_events,
    allocator_ranges,
    annotations,
    blocks,
    category_changes,
    counters,
    device_annotations,
    flows,
    kernels,
    launches,
    memory_events,
    operators,
    other_events,
    python_calls,
    segments,
    stacks,
    steps,
    track_labels,
)
from maiprof_nb.tables.schema import Column, Schema

SCHEMAS: dict[str, Schema] = {
    module.SCHEMA.name: module.SCHEMA
    for module in (
        operators,
        launches,
        kernels,
        annotations,
        device_annotations,
        python_calls,
        steps,
        flows,
        counters,
        memory_events,
        category_changes,
        track_labels,
        other_events,
        segments,
        blocks,
        allocator_events,
        allocator_ranges,
        allocations,
        stacks,
    )
}

__all__ = ["SCHEMAS", "Column", "Schema"]
