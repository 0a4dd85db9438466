"""Lists of whatever a file holds -> typed columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

_MAX = 2**62


def integers(values: list[Any]) -> pd.api.extensions.ExtensionArray:
    """Optional integers: numbers and numeric strings; anything else is missing."""
    unknown = values.count(None)
    if unknown == len(values):
        return pd.arrays.IntegerArray(np.zeros(unknown, np.int64), np.ones(unknown, bool))
    try:
        made = np.array([0 if v is None else v for v in values] if unknown else values)
    except (ValueError, OverflowError):
        made = np.empty(0)
    if made.dtype != np.int64 or len(made) != len(values):
        return _one_by_one(values)
    missing = np.abs(made) >= _MAX
    if unknown:
        missing |= np.array([v is None for v in values])
    return pd.arrays.IntegerArray(np.where(missing, 0, made), missing)


def _one_by_one(values: list[Any]) -> pd.api.extensions.ExtensionArray:
    numbers = [value if type(value) is int else _integer(value) for value in values]
    missing = np.array([n is None or not -_MAX < n < _MAX for n in numbers], dtype=bool)
    made = [0 if gone else number for number, gone in zip(numbers, missing, strict=True)]
    return pd.arrays.IntegerArray(np.array(made, dtype=np.int64), missing)


def _integer(value: Any) -> int | None:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str):
        try:
            return int(value, 16) if value.startswith("0x") else int(value)
        except ValueError:
            return None
    return None


def floats(values: list[Any]) -> pd.api.extensions.ExtensionArray:
    """Optional floats; anything that is not a finite number is missing."""
    made = np.array(
        [v if isinstance(v, int | float) and abs(v) < _MAX else np.nan for v in values],
        dtype=np.float64,
    )
    missing = np.isnan(made)
    return pd.arrays.FloatingArray(np.where(missing, 0.0, made), missing)


def texts(values: list[Any]) -> pd.Categorical:
    """Text, or missing, as categories."""
    codes, names = pd.factorize(np.array(values, dtype=object))
    return pd.Categorical.from_codes(codes, categories=pd.Index(names, dtype="str"))


def labels(values: list[Any]) -> pd.Categorical:
    """Numbers or text, or missing, as categories of text: 7 and "7" are one."""
    codes, found = pd.factorize(np.array(values, dtype=object))
    again, names = pd.factorize(np.array([str(value) for value in found], dtype=object))
    return pd.Categorical.from_codes(
        np.append(again, -1)[codes], categories=pd.Index(names, dtype="str")
    )
