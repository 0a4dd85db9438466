"""Named ranges on the host."""

from __future__ import annotations

from maiprof_nb.tables.columns import EXTERNAL_ID, HOST_CALL
from maiprof_nb.tables.schema import Schema

SCHEMA = Schema(
    name="annotations",
    row="one range of the host named by the user or the framework (`user_annotation`)",
    columns=(
        *HOST_CALL,
        EXTERNAL_ID,
    ),
)
