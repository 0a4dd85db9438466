"""Allocator events inside a trace."""

from __future__ import annotations

from maiprof_nb.tables.columns import DEVICE, EVENT, PROCESS, START, THREAD
from maiprof_nb.tables.schema import Column, Schema

SCHEMA = Schema(
    name="memory_events",
    row="one `[memory]` instant of the profiler",
    columns=(
        EVENT,
        START,
        PROCESS,
        THREAD,
        Column("device_type", "Int64", "0 = host, 1 = CUDA (torch's DeviceType)"),
        DEVICE,
        Column("address", "Int64", "address of the block"),
        Column("size_bytes", "int64", "allocated (positive) or freed (negative)", "B"),
        Column("allocated_bytes", "Int64", "total allocated on the device afterwards", "B"),
        Column("reserved_bytes", "Int64", "total reserved on the device afterwards", "B"),
    ),
)
