"""Host ranges mirrored onto the device."""

from __future__ import annotations

from maiprof_nb.tables.schema import Column, Schema

SCHEMA = Schema(
    name="device_annotations",
    row="one host range mirrored onto a stream (`gpu_user_annotation`); never device work",
    columns=(
        Column("event", "int64", "position of the event in its file, counted from 0"),
        Column("name", "category", "name as written in the file"),
        Column("ts_ns", "int64", "start, from the recording's time zero", "ns"),
        Column("dur_ns", "int64", "duration", "ns"),
        Column("device", "Int64", "index of the device"),
        Column("stream", "Int64", "device queue the work ran on"),
        Column("external_id", "Int64", "id that ties launches and device work to the operator"),
    ),
)
