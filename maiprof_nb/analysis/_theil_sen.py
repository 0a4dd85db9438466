"""A slope that a few odd values cannot move, with its confidence interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

CONFIDENCE = 0.95
_Z = 1.959964  # two-sided normal quantile of CONFIDENCE
_MOST = 600  # values; more are thinned evenly, as every pair is looked at


@dataclass(frozen=True, slots=True)
class Slope:
    """Theil-Sen slope a position, and Sen's 95 % confidence interval.

    Parameters
    ----------
    value, low, high : float
        Median of the slopes of all pairs, and its interval; NaN with fewer than two values.
    count : int
        Number of values.
    """

    value: float
    low: float
    high: float
    count: int


def theil_sen(values: npt.NDArray[np.float64]) -> Slope:
    """Slope of `values` over their positions."""
    position = np.arange(len(values), dtype=np.float64)
    if len(values) > _MOST:
        kept = np.linspace(0, len(values) - 1, _MOST).astype(np.int64)
        position, values = position[kept], values[kept]
    count = len(values)
    if count < 2:
        return Slope(float("nan"), float("nan"), float("nan"), count)
    one, other = np.triu_indices(count, 1)
    slopes = np.sort((values[other] - values[one]) / (position[other] - position[one]))
    half = _Z * np.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    low = int(np.clip(np.floor((len(slopes) - half) / 2), 0, len(slopes) - 1))
    high = int(np.clip(np.ceil((len(slopes) + half) / 2), 0, len(slopes) - 1))
    return Slope(float(np.median(slopes)), float(slopes[low]), float(slopes[high]), count)
