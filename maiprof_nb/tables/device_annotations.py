"""Host ranges mirrored onto the device."""

from __future__ import annotations

from maiprof_nb.tables.columns import DEVICE, DURATION, EVENT, EXTERNAL_ID, NAME, START, STREAM
from maiprof_nb.tables.schema import Schema

SCHEMA = Schema(
    name="device_annotations",
    row="one host range mirrored onto a stream (`gpu_user_annotation`); never device work",
    columns=(
        EVENT,
        NAME,
        START,
        DURATION,
        DEVICE,
        STREAM,
        EXTERNAL_ID,
    ),
)
