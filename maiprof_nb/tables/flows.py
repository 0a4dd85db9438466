"""Arrows between events."""

from __future__ import annotations

from maiprof_nb.tables.columns import EVENT, PROCESS, START, THREAD
from maiprof_nb.tables.schema import Column, Schema

SCHEMA = Schema(
    name="flows",
    row="one end of an arrow (`s`, `t` or `f` event)",
    columns=(
        EVENT,
        Column("category", "category", "kind of arrow, e.g. ac2g (launch to device) or fwdbwd"),
        Column(
            "flow_id", "Int64", "id shared by the ends of one arrow; missing if it is no number"
        ),
        Column("end", "category", "start, step or finish"),
        START,
        PROCESS,
        THREAD,
    ),
)
