"""Columns are named, typed, documented, and checked when a table is made."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from maiprof_nb.errors import MaiprofError
from maiprof_nb.tables import SCHEMAS, Column, Schema
from maiprof_nb.tables.joining import join

REPOSITORY = Path(__file__).parents[2]
TYPES = {"int64", "Int64", "float64", "Float64", "category", "bool"}
COLUMNS = [(schema, column) for schema in SCHEMAS.values() for column in schema.columns]
SMALL = Schema(
    "small",
    "one row",
    (
        Column("event", "int64", "place"),
        Column("name", "category", "name"),
        Column("device", "Int64", "device"),
        Column("share", "float64", "share"),
        Column("live", "bool", "alive"),
    ),
)
ROW = {"event": [1, 2], "name": ["a", None], "device": [0, None], "share": [0.5, np.nan]} | {
    "live": [True, False]
}


@pytest.mark.parametrize(("schema", "column"), COLUMNS, ids=lambda value: value.name)
def test_every_column_is_documented(schema, column):
    assert column.dtype in TYPES
    assert column.meaning.strip()
    assert re.fullmatch(r"[a-z][a-z0-9_]*", column.name)
    page = (REPOSITORY / "docs" / "tables.md").read_text(encoding="utf-8")
    section = page.split(f"## {schema.name}\n")[1].split("\n## ")[0]
    assert f"`{column.name}`" in section
    assert column.meaning in section


@pytest.mark.parametrize(("schema", "column"), COLUMNS, ids=lambda value: value.name)
def test_a_unit_in_the_name_is_the_unit_stated(schema, column):
    for ending, unit in (("_ns", "ns"), ("_bytes", "B"), ("_pct", "%")):
        assert column.name.endswith(ending) == (column.unit == unit), column


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=lambda schema: schema.name)
def test_table_says_what_a_row_is(schema):
    assert SCHEMAS[schema.name] is schema
    assert len(schema.row) > 10
    assert len(set(schema.column_names)) == len(schema.columns)


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=lambda schema: schema.name)
def test_an_empty_table_has_its_columns(schema):
    empty = schema.empty()
    assert list(empty.columns) == schema.column_names
    assert len(empty) == 0
    schema.validate(empty)


def test_values_take_the_declared_types():
    frame = SMALL.frame(ROW)
    SMALL.validate(frame)
    assert frame["device"].isna().tolist() == [False, True]
    assert frame["name"].isna().tolist() == [False, True]


def test_missing_and_unknown_columns_are_named():
    with pytest.raises(MaiprofError, match=r"small: missing \['name'\], unknown \['nome'\]"):
        SMALL.frame({("nome" if key == "name" else key): ROW[key] for key in ROW})


def test_a_value_of_another_type_is_refused_by_column():
    with pytest.raises(MaiprofError, match="column event cannot be int64"):
        SMALL.frame(ROW | {"event": ["x", "y"]})
    with pytest.raises(MaiprofError, match="column event cannot be int64"):
        SMALL.frame(ROW | {"event": [1, None]})


@pytest.mark.parametrize("change", [{"step": "float64"}, {"name": "str"}])
def test_a_table_of_other_types_is_not_valid(change):
    wrong = SCHEMAS["steps"].empty().assign(name="x").astype(change)
    with pytest.raises(MaiprofError, match="steps"):
        SCHEMAS["steps"].validate(wrong)


def test_joined_tables_keep_categories():
    parts = [SMALL.frame(ROW), SMALL.frame(ROW | {"name": ["b", "a"]})]
    joined = join(parts)
    SMALL.validate(joined)
    assert joined["name"].astype(object).where(joined["name"].notna(), None).tolist() == [
        "a",
        None,
        "b",
        "a",
    ]
    assert join(parts[:1]) is parts[0]


def test_joined_with_an_empty_table():
    joined = join([SMALL.empty(), SMALL.frame(ROW)])
    SMALL.validate(joined)
    assert len(joined) == 2
    assert isinstance(joined, pd.DataFrame)
