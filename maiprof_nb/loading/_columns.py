"""Columns from lists of dicts."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

_Row = dict[str, Any]


def column(rows: Sequence[_Row], key: str) -> list[Any]:
    """One value a row; None where it is missing."""
    try:
        return list(map(itemgetter(key), rows))  # no Python call a row
    except KeyError:
        return [row.get(key) for row in rows]


def integers(
    rows: Sequence[_Row], key: str, *, default: int | None = None
) -> npt.NDArray[np.int64]:
    """One integer a row; raises TypeError where it is missing and has no default."""
    try:
        return np.fromiter(map(itemgetter(key), rows), np.int64, len(rows))
    except KeyError:
        return np.fromiter((row.get(key, default) for row in rows), np.int64, len(rows))


def optional_integers(rows: Sequence[_Row], key: str) -> pd.arrays.IntegerArray:
    """One integer a row, or missing."""
    values = column(rows, key)
    try:
        known = np.fromiter(values, np.int64, len(values))
        return pd.arrays.IntegerArray(known, np.zeros(len(values), dtype=np.bool_))
    except TypeError:
        missing = np.fromiter((value is None for value in values), np.bool_, len(values))
        known = np.fromiter((value or 0 for value in values), np.int64, len(values))
        return pd.arrays.IntegerArray(known, missing)


def same_objects(values: Sequence[Any]) -> tuple[npt.NDArray[np.int64], list[Any]]:
    """For each value the number of its object, and the distinct objects as they are met."""
    codes, found = pd.factorize(np.fromiter(map(id, values), np.int64, len(values)))
    first = np.empty(len(found), dtype=np.int64)
    first[codes[::-1]] = np.arange(len(values))[::-1]  # the earliest is written last
    return codes.astype(np.int64), [values[row] for row in first.tolist()]
