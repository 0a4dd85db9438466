"""Which allocations get a band of their own in a picture, and which are too small for one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maiprof_nb.analysis._memory_log import MemoryLog
from maiprof_nb.timebase import TimeWindow

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_LARGEST_SHARE = 10  # one band in ten is kept for the largest, however short they live


@dataclass(frozen=True)
class ChosenBands:
    """What becomes of each allocation that lives in a window.

    Parameters
    ----------
    large, small : array of int64
        Rows of the log's ``allocations`` with a band of their own, and of those to merge.
    drawn, merged : (array, array, array)
        First and end column and size of `large`, and of `small`.
    brief, brief_bytes : int
        Those that live between two columns.
    """

    large: Ints
    drawn: tuple[Ints, Ints, Floats]
    small: Ints
    merged: tuple[Ints, Ints, Floats]
    brief: int
    brief_bytes: int


def chosen_bands(
    log: MemoryLog, window: TimeWindow, states: Ints, inside: Ints, max_bands: int, least: float
) -> ChosenBands:
    """At most `max_bands` of `least` bytes or more: most bytes x time, and the largest.

    ``states`` is the state of each column, ``inside`` the columns the log covers.
    """
    lives = log.allocations
    start = lives["ts_ns"].to_numpy(np.int64)
    end = lives["end_ns"].to_numpy(np.int64, na_value=np.iinfo(np.int64).max)
    living = (start <= window.end_ns) & (end >= window.start_ns)
    # columns sampled before each state: a look-up costs less than a search for every life
    counts = np.bincount(states[inside], minlength=len(log.ts_ns))
    before_state = np.concatenate([[0], np.cumsum(counts)])
    skipped = inside[0] if len(inside) else 0  # columns inside the log are one run
    first = before_state[lives["first_state"].to_numpy(np.int64)] + skipped
    last = before_state[lives["end_state"].to_numpy(np.int64)] + skipped
    seen = np.flatnonzero((last > first) & living)
    size = lives["size_bytes"].to_numpy(np.int64)
    large = seen[size[seen] >= least]
    if len(large) > max_bands:
        duration = np.minimum(end, window.end_ns) - np.maximum(start, window.start_ns)
        weight = size[large].astype(np.float64) * (duration[large] + 1)
        heavy = max_bands - max_bands // _LARGEST_SHARE
        order = np.argpartition(-weight, heavy)
        others = large[order[heavy:]]
        largest = others[np.argpartition(-size[others], max_bands - heavy)[: max_bands - heavy]]
        large = np.sort(np.concatenate([large[order[:heavy]], largest]))
    small = np.setdiff1d(seen, large, assume_unique=True)

    def placed(rows: Ints) -> tuple[Ints, Ints, Floats]:
        return first[rows], last[rows], size[rows].astype(np.float64)

    brief = int(living.sum()) - len(seen)
    brief_bytes = int(size[living].sum() - size[seen].sum())
    return ChosenBands(large, placed(large), small, placed(small), brief, brief_bytes)
