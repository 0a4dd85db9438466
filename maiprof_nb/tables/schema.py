"""What a table is: named, typed, documented columns, checked when a table is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from maiprof_nb.errors import MaiprofError


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its pandas dtype, unit and meaning.

    ``dtype`` is one of ``int64``, ``Int64`` (may be missing), ``float64``, ``Float64``
    (may be missing), ``category`` (text, may be missing) and ``bool``.
    """

    name: str
    dtype: str
    meaning: str
    unit: str = ""


@dataclass(frozen=True)
class Schema:
    """The columns of one table and what a row is."""

    name: str
    row: str
    columns: tuple[Column, ...]

    @property
    def column_names(self) -> list[str]:
        """Names in the order of the table."""
        return [column.name for column in self.columns]

    def frame(self, data: Mapping[str, Any]) -> pd.DataFrame:
        """Build a checked DataFrame from one array-like a column.

        Raises
        ------
        MaiprofError
            If a column is missing, unknown, or cannot take its declared type.
        """
        if set(data) != set(self.column_names):
            missing = sorted(set(self.column_names) - set(data))
            unknown = sorted(set(data) - set(self.column_names))
            raise MaiprofError(f"table {self.name}: missing {missing}, unknown {unknown}")
        made = {column.name: _typed(data[column.name], column) for column in self.columns}
        return pd.DataFrame(made, copy=False)

    def empty(self) -> pd.DataFrame:
        """The table without rows."""
        return self.frame({name: [] for name in self.column_names})

    def validate(self, frame: pd.DataFrame) -> None:
        """Raise MaiprofError unless `frame` has exactly these columns and types."""
        found = {name: str(dtype) for name, dtype in frame.dtypes.items()}
        wanted = {column.name: column.dtype for column in self.columns}
        if found != wanted:
            raise MaiprofError(f"table {self.name}: columns are {found}, not {wanted}")


def _typed(values: Any, column: Column) -> pd.Series[Any]:
    if column.dtype == "category":
        return pd.Series(_text_categories(values), copy=False)
    series = values if isinstance(values, pd.Series) else pd.Series(values, copy=False)
    if str(series.dtype) == column.dtype:
        return series.reset_index(drop=True)
    try:
        if column.dtype in ("int64", "bool") and len(series) == 0:
            return pd.Series([], dtype=column.dtype)
        return series.astype(column.dtype).reset_index(drop=True)
    except (TypeError, ValueError, OverflowError) as problem:
        raise MaiprofError(f"column {column.name} cannot be {column.dtype}: {problem}") from problem


def _text_categories(values: Any) -> pd.Categorical:
    """Categories of text, whatever was given, so that parts of a table can be joined."""
    made = values.array if isinstance(values, pd.Series) else values
    if not isinstance(made, pd.Categorical):
        made = pd.Categorical(made)
    if made.categories.dtype != "str":
        made = made.rename_categories(made.categories.astype("str"))
    return made
