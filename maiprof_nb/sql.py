"""SQL over the tables of a session, on the memory they lie in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa

from maiprof_nb.errors import MaiprofError, UsageError
from maiprof_nb.recording import Recording
from maiprof_nb.tables import SCHEMAS
from maiprof_nb.tables.arrow import to_arrow

if TYPE_CHECKING:
    import duckdb

_TIMES = ("ts_ns", "end_ns")


def connect(
    recordings: Sequence[Recording], offsets_ns: Sequence[int]
) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection in which every table of the recordings is a view.

    Parameters
    ----------
    recordings : sequence of Recording
        Their tables are read where they lie; nothing is copied.
    offsets_ns : sequence of int
        Added to the times of each.

    Raises
    ------
    MaiprofError
        If DuckDB is not installed.
    """
    try:
        import duckdb  # noqa: PLC0415 - only who asks in SQL needs it
    except ImportError as problem:
        raise MaiprofError(
            "DuckDB is not installed", remedy='Install it with: pip install "maiprof-nb[sql]"'
        ) from problem
    connection = duckdb.connect(":memory:")
    for name, schema in SCHEMAS.items():
        parts = []
        for number, recording in enumerate(recordings):
            if name in recording.tables:
                held = f"held_{name}_{number}"
                connection.register(held, _arrow(recording, name))
                offset_ns = offsets_ns[number]
                parts.append(_select(held, number, recording.rank, offset_ns, schema.column_names))
        if not parts:
            held = f"held_{name}"
            connection.register(held, to_arrow(schema.empty()))
            parts = [f"{_select(held, 0, None, 0, schema.column_names)} WHERE false"]
        connection.execute(f"CREATE VIEW {name} AS {' UNION ALL '.join(parts)}")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def answer(connection: duckdb.DuckDBPyConnection, query: str) -> pd.DataFrame:
    """The result of one query.

    Raises
    ------
    UsageError
        If DuckDB refuses it, in DuckDB's words.
    """
    import duckdb  # noqa: PLC0415

    try:
        return connection.execute(query).df()
    except duckdb.Error as problem:
        raise UsageError(
            f"the query cannot be answered: {problem}",
            remedy=f"Tables: {', '.join(SCHEMAS)}; their columns are in docs/tables.md",
        ) from problem


def _arrow(recording: Recording, name: str) -> pa.Table:
    lying = getattr(recording.tables, "arrow", None)
    return lying(name) if lying is not None else to_arrow(recording.tables[name])


def _select(held: str, number: int, rank: int | None, offset_ns: int, columns: list[str]) -> str:
    named = ", ".join(_column(column, offset_ns) for column in columns)
    shown_rank = "NULL" if rank is None else str(int(rank))
    keys = f"{number} AS recording, CAST({shown_rank} AS BIGINT) AS rank"
    return f"SELECT {keys}, {named} FROM {held}"  # noqa: S608 - names of our own schemas


def _column(name: str, offset_ns: int) -> str:
    return f'"{name}" + {int(offset_ns)} AS "{name}"' if name in _TIMES else f'"{name}"'
