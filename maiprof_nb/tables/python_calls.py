"""Python function calls."""

from __future__ import annotations

from maiprof_nb.tables.columns import HOST_CALL
from maiprof_nb.tables.schema import Column, Schema

SCHEMA = Schema(
    name="python_calls",
    row="one call of a Python function (`python_function`)",
    columns=(
        *HOST_CALL,
        Column("python_id", "Int64", "id of this call"),
        Column("parent_id", "Int64", "id of the calling Python call"),
        Column("module_id", "Int64", "instance number of the nn.Module, for module calls"),
    ),
)
