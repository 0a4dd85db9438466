"""Host-side framework operators."""

from __future__ import annotations

from maiprof_nb.tables.schema import Column, Schema

SCHEMA = Schema(
    name="operators",
    row="one call of a host-side framework operator (`cpu_op`)",
    columns=(
        Column("event", "int64", "position of the event in its file, counted from 0"),
        Column("name", "category", "name as written in the file"),
        Column("ts_ns", "int64", "start, from the recording's time zero", "ns"),
        Column("dur_ns", "int64", "duration", "ns"),
        Column(
            "pid", "category", "process, as text (files write ints and strings for one process)"
        ),
        Column("tid", "category", "thread, as text"),
        Column("external_id", "Int64", "id that ties launches and device work to the operator"),
        Column(
            "sequence",
            "Int64",
            "autograd sequence number, shared by a forward operator and its backward",
        ),
        Column("input_dims", "category", "shapes of the inputs as written, if recorded"),
        Column(
            "input_types",
            "category",
            "types of the inputs as written, if recorded, in the order of `input_dims`",
        ),
        Column(
            "concrete_inputs",
            "category",
            "values of the inputs that are no tensors (strides, flags) as written, if recorded",
        ),
        Column(
            "call_stack",
            "category",
            "Python lines that led to it, innermost first, in traces that write them as text",
        ),
    ),
)
