"""Allocator events inside a trace."""

from __future__ import annotations

from maiprof_nb.tables.schema import Column, Schema

SCHEMA = Schema(
    name="memory_events",
    row="one `[memory]` instant of the profiler",
    columns=(
        Column("event", "int64", "position of the event in its file, counted from 0"),
        Column("ts_ns", "int64", "start, from the recording's time zero", "ns"),
        Column(
            "pid", "category", "process, as text (files write ints and strings for one process)"
        ),
        Column("tid", "category", "thread, as text"),
        Column("device_type", "Int64", "0 = host, 1 = CUDA (torch's DeviceType)"),
        Column("device", "Int64", "index of the device"),
        Column("address", "Int64", "address of the block"),
        Column("size_bytes", "int64", "allocated (positive) or freed (negative)", "B"),
        Column("allocated_bytes", "Int64", "total allocated on the device afterwards", "B"),
        Column("reserved_bytes", "Int64", "total reserved on the device afterwards", "B"),
    ),
)
