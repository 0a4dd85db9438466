"""Columns from lists of dicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

_Row = dict[str, Any]


def integers(
    rows: Sequence[_Row], key: str, *, default: int | None = None
) -> npt.NDArray[np.int64]:
    """One integer a row; raises TypeError where it is missing and has no default."""
    return np.fromiter((row.get(key, default) for row in rows), np.int64, len(rows))


def optional_integers(rows: Sequence[_Row], key: str) -> pd.arrays.IntegerArray:
    """One integer a row, or missing."""
    missing = np.fromiter((row.get(key) is None for row in rows), np.bool_, len(rows))
    values = np.fromiter((row.get(key) or 0 for row in rows), np.int64, len(rows))
    return pd.arrays.IntegerArray(values, missing)
