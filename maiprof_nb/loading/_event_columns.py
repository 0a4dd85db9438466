"""Lists of whatever a file holds -> typed columns."""

from __future__ import annotations

import re
from typing import Any

import msgspec
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
    if values.count(None) == len(values):
        nothing = np.full(len(values), -1, dtype=np.int8)
        return pd.Categorical.from_codes(nothing, categories=pd.Index([], dtype="str"))
    codes, names = pd.factorize(np.array(values, dtype=object))
    return pd.Categorical.from_codes(codes, categories=pd.Index(names, dtype="str"))


def labels(values: list[Any]) -> pd.Categorical:
    """Numbers or text, or missing, as categories of text: 7 and "7" are one."""
    codes, found = pd.factorize(np.array(values, dtype=object))
    again, names = pd.factorize(np.array([str(value) for value in found], dtype=object))
    return pd.Categorical.from_codes(
        np.append(again, -1)[codes], categories=pd.Index(names, dtype="str")
    )


def written(values: list[msgspec.Raw]) -> pd.Categorical:
    """The text of values that were left undecoded, on one line; missing where there is none."""
    codes, found = _numbered(values)
    return _distinct(codes, [_one_line(str(text, "utf-8", "replace")) for text in found])


def extents(values: list[msgspec.Raw]) -> pd.Categorical:
    """Three whole numbers as ``[x, y, z]``; missing where the file says anything else."""
    codes, found = _numbered(values)
    return _distinct(codes, [_extent(text) for text in found])


def strings(values: list[msgspec.Raw]) -> pd.Categorical:
    """Text that was left undecoded; missing where the file says anything else."""
    codes, found = _numbered(values)
    return _distinct(codes, [_string(text) for text in found])


def _numbered(values: list[msgspec.Raw]) -> tuple[Any, list[bytes]]:
    """Each value's place among the different ones. For short bytes faster than factorize."""
    if not any(values):
        return np.full(len(values), -1), []
    seen: dict[bytes, int] = {}
    place = seen.setdefault
    codes = [place(value, len(seen)) for value in map(bytes, values)]
    return np.array(codes, dtype=np.int64), list(seen)


def _one_line(text: str) -> str:
    """Lists that a file spreads over lines as others write them."""
    return re.sub(r"\s*\n\s*", "", re.sub(r",\s*\n\s*", ", ", text)) if "\n" in text else text


def _extent(text: bytes) -> str:
    try:
        return str(msgspec.json.decode(text, type=list[int])) if text else ""
    except msgspec.MsgspecError:
        return ""


def _string(text: bytes) -> str:
    try:
        return msgspec.json.decode(text, type=str) if text else ""
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""


def _distinct(codes: Any, names: list[str]) -> pd.Categorical:
    """Categories from places in a list of texts; equal ones are one, empty ones missing."""
    again, unique = pd.factorize(np.array([name or None for name in names], dtype=object))
    found = again[codes] if len(names) else codes
    return pd.Categorical.from_codes(found, categories=pd.Index(unique, dtype="str"))
