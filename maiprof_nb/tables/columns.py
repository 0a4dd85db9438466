"""Columns that several tables share."""

from __future__ import annotations

from maiprof_nb.tables.schema import Column

EVENT = Column("event", "int64", "position of the event in its file, counted from 0")
NAME = Column("name", "category", "name as written in the file")
START = Column("ts_ns", "int64", "start, from the recording's time zero", "ns")
DURATION = Column("dur_ns", "int64", "duration", "ns")
PROCESS = Column(
    "pid", "category", "process, as text (files write ints and strings for one process)"
)
THREAD = Column("tid", "category", "thread, as text")
EXTERNAL_ID = Column(
    "external_id", "Int64", "id that ties launches and device work to the operator"
)
CORRELATION = Column(
    "correlation",
    "Int64",
    "id of the launch call; a graph launch shares it among its kernels",
)
DEVICE = Column("device", "Int64", "index of the device")
STREAM = Column("stream", "Int64", "device queue the work ran on")
HOST_CALL = (EVENT, NAME, START, DURATION, PROCESS, THREAD)
