"""Host-side framework operators."""

from __future__ import annotations

from maiprof_nb.tables.columns import EXTERNAL_ID, HOST_CALL
from maiprof_nb.tables.schema import Column, Schema

SCHEMA = Schema(
    name="operators",
    row="one call of a host-side framework operator (`cpu_op`)",
    columns=(
        *HOST_CALL,
        EXTERNAL_ID,
        Column(
            "sequence",
            "Int64",
            "autograd sequence number, shared by a forward operator and its backward",
        ),
        Column(
            "forward_thread",
            "Int64",
            "the profiler's number of the thread that ran the forward of a backward function; 0 "
            "for a forward operator",
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
