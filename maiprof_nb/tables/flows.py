"""Arrows between events."""

from __future__ import annotations

from maiprof_nb.tables.schema import Column, Schema

SCHEMA = Schema(
    name="flows",
    row="one end of an arrow (`s`, `t` or `f` event)",
    columns=(
        Column("event", "int64", "position of the event in its file, counted from 0"),
        Column("category", "category", "kind of arrow, e.g. ac2g (launch to device) or fwdbwd"),
        Column(
            "flow_id", "Int64", "id shared by the ends of one arrow; missing if it is no number"
        ),
        Column("end", "category", "start, step or finish"),
        Column("ts_ns", "int64", "start, from the recording's time zero", "ns"),
        Column(
            "pid", "category", "process, as text (files write ints and strings for one process)"
        ),
        Column("tid", "category", "thread, as text"),
    ),
)
