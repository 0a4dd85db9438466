"""Distinct stacks."""

from __future__ import annotations

from maiprof_nb.tables.schema import Column, Schema

SCHEMA = Schema(
    name="stacks",
    row="one distinct stack of frames",
    columns=(
        Column("stack", "int64", "row id"),
        Column("label", "category", "innermost frame of the user's own code, for people"),
        Column(
            "frames", "category", "all frames, innermost first, one `function (file:line)` a line"
        ),
    ),
)
