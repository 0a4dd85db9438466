"""Host calls that start or await device work."""

from __future__ import annotations

from maiprof_nb.tables.columns import CORRELATION, EXTERNAL_ID, HOST_CALL
from maiprof_nb.tables.schema import Schema

SCHEMA = Schema(
    name="launches",
    row="one runtime or driver call of the host (`cuda_runtime`, `cuda_driver`)",
    columns=(
        *HOST_CALL,
        EXTERNAL_ID,
        CORRELATION,
    ),
)
