"""Which step a moment lies in."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

Ints = npt.NDArray[np.int64]


def step_rows(marks: pd.DataFrame, recording: Ints, ts_ns: Ints) -> Ints:
    """Row of `steps(session)` whose mark holds each moment, or -1.

    A step reaches to the start of the next one of its recording; the last to its end.
    """
    found = np.full(len(ts_ns), -1, dtype=np.int64)
    for number, rows in marks.groupby("recording"):
        mine = np.flatnonzero(recording == number)
        start = rows["ts_ns"].to_numpy(np.int64)
        index = np.searchsorted(start, ts_ns[mine], side="right") - 1
        inside = (index >= 0) & (ts_ns[mine] < int(rows["end_ns"].max()))
        found[mine[inside]] = rows.index.to_numpy(np.int64)[index[inside]]
    return found


def sums_by_step(marks: pd.DataFrame, row: Ints, values: Ints) -> Ints:
    """Values summed over the step they belong to; one figure a row of `marks`."""
    total = np.zeros(len(marks), dtype=np.int64)
    np.add.at(total, row[row >= 0], values[row >= 0])
    return total
