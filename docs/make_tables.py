"""Writes docs/tables.md from the schemas: ``python docs/make_tables.py``."""

from __future__ import annotations

from pathlib import Path

from maiprof_nb.tables import SCHEMAS, Schema

TARGET = Path(__file__).with_name("tables.md")
HEAD = """# Tables

Every recording is a set of these tables (`session.table("kernels")` joins them over the recordings of
a session, with `recording` and `rank` in front). Generated from the schemas by `docs/make_tables.py`.

Times are integer nanoseconds. In a recording they count from its own time zero, in a session from the
session's. `Int64` and `Float64` columns may be missing; `category` is text.
"""


def text() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(_section(schema) for schema in SCHEMAS.values())])


def _section(schema: Schema) -> str:
    rows = [
        f"| `{column.name}` | {column.dtype} | {column.unit} | {column.meaning} |"
        for column in schema.columns
    ]
    head = ["| column | type | unit | meaning |", "|---|---|---|---|"]
    return "\n".join([f"## {schema.name}", "", f"A row is {schema.row}.", "", *head, *rows, ""])


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
