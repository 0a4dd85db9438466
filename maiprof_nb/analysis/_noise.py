"""Whether two samples of steps differ by more than steps differ among themselves."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]
FEWEST = 4  # steps a side; with three the test can never say anything


def mann_whitney(before: Floats, after: Floats) -> Floats:
    """Two-sided p-values of the rank-sum test, one a row.

    Parameters
    ----------
    before, after : ndarray of float64, names x steps
        One value a step.

    Returns
    -------
    ndarray of float64
        Chance of ranks at least so different if both came from one distribution: normal
        approximation, corrected for ties and continuity. NaN below four steps a side.
    """
    first, second = before.shape[1], after.shape[1]
    if min(first, second) < FEWEST:
        return np.full(len(before), np.nan)
    joined = np.concatenate((before, after), axis=1)
    ranks = pd.DataFrame(joined).rank(axis=1).to_numpy(np.float64)
    count = first + second
    statistic = ranks[:, :first].sum(axis=1) - first * (first + 1) / 2
    mean = first * second / 2
    spread = np.sqrt(first * second / 12 * (count + 1 - _ties(joined) / (count * (count - 1))))
    away = np.maximum(np.abs(statistic - mean) - 0.5, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(spread > 0, away / spread, 0)
    return np.array([math.erfc(one / math.sqrt(2)) for one in z])


def adjusted(p_values: Floats) -> Floats:
    """P-values that allow for how many were looked at (Benjamini and Hochberg)."""
    known = ~np.isnan(p_values)
    found = p_values[known]
    order = np.argsort(found)[::-1]
    scaled = found[order] * len(found) / np.arange(len(found), 0, -1)
    result = np.full(len(p_values), np.nan)
    corrected = np.empty(len(found))
    corrected[order] = np.minimum(np.minimum.accumulate(scaled), 1)
    result[known] = corrected
    return result


def _ties(joined: Floats) -> Floats:
    """Sum of t^3 - t over the groups of equal values of each row."""
    high = pd.DataFrame(joined).rank(axis=1, method="max").to_numpy()
    low = pd.DataFrame(joined).rank(axis=1, method="min").to_numpy()
    size = high - low + 1
    return np.asarray((size**2 - 1).sum(axis=1), dtype=np.float64)
