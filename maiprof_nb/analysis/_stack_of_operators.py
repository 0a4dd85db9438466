"""Which operator made an allocation, for traces whose memory events carry no stack."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

_UNKNOWN = -1


def operator_stacks(
    operators: pd.DataFrame,
    python_calls: pd.DataFrame,
    events: pd.DataFrame,
    rows: pd.Series[Any],
) -> tuple[pd.Series[Any], pd.DataFrame]:
    """The operator and the Python call that enclose each allocation.

    Parameters
    ----------
    operators, python_calls, events : DataFrame
        Tables of one trace; `events` is its ``memory_events``.
    rows : Series of int
        Row of `events` that made each allocation; negative = not seen.

    Returns
    -------
    (Series of Int64, DataFrame)
        Stack of each allocation (missing where no operator or call encloses it), and the
        stacks: ``stack, label, frames``.
    """
    made = rows.to_numpy(np.int64)
    seen = made >= 0
    at = events.iloc[made[seen]]
    operator, operator_names = _innermost(operators, at)
    call, call_names = _innermost(python_calls, at)
    pairs, first = np.unique(np.stack([operator, call]), axis=1, return_inverse=True)
    labels, frames = [], []
    for op_code, call_code in pairs.T:
        names = [operator_names[op_code]] if op_code >= 0 else []
        names += [call_names[call_code]] if call_code >= 0 else []
        labels.append(names[0] if names else "outside operators")
        frames.append("\n".join(names))
    stack = pd.array([pd.NA] * len(made), dtype="Int64")
    known = np.maximum(pairs[0], pairs[1]) >= 0
    found = np.asarray(first, dtype=np.int64).reshape(-1)
    stack[np.flatnonzero(seen)[known[found]]] = found[known[found]]
    table = pd.DataFrame(
        {
            "stack": np.arange(len(labels), dtype=np.int64),
            "label": pd.Categorical(labels),
            "frames": pd.Categorical(frames),
        }
    )
    return pd.Series(stack), table


def _innermost(ranges: pd.DataFrame, at: pd.DataFrame) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Code of the name of the innermost range of the same thread around each row of `at`."""
    names = [str(name) for name in ranges["name"].cat.categories]
    found = np.full(len(at), _UNKNOWN, dtype=np.int64)
    if len(ranges) == 0 or len(at) == 0:
        return found, names
    own_thread, asking_thread = _threads(ranges, at)
    start = ranges["ts_ns"].to_numpy(np.int64)
    end = start + ranges["dur_ns"].to_numpy(np.int64)
    code = ranges["name"].cat.codes.to_numpy(np.int64)
    ts_ns = at["ts_ns"].to_numpy(np.int64)
    for thread in np.unique(asking_thread):
        mine, asked = own_thread == thread, np.flatnonzero(asking_thread == thread)
        if mine.any():
            found[asked] = _innermost_of_thread(start[mine], end[mine], code[mine], ts_ns[asked])
    return found, names


def _threads(
    ranges: pd.DataFrame, at: pd.DataFrame
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    both = pd.concat([frame[["pid", "tid"]].astype(str) for frame in (ranges, at)])
    codes = both.groupby(["pid", "tid"], sort=False).ngroup().to_numpy().astype(np.int64)
    return codes[: len(ranges)], codes[len(ranges) :]


def _innermost_of_thread(
    start: npt.NDArray[np.int64],
    end: npt.NDArray[np.int64],
    code: npt.NDArray[np.int64],
    ts_ns: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    order = np.lexsort((-end, start))
    start, end, code = start[order], end[order], code[order]
    # depth of a range = ranges opened before it and not yet closed (they nest on a thread)
    depth = np.arange(len(start)) - np.searchsorted(np.sort(end), start, side="right")
    found = np.full(len(ts_ns), _UNKNOWN, dtype=np.int64)
    for level in range(int(depth.max()), -1, -1):
        here = depth == level
        if not here.any():
            continue
        last = np.searchsorted(start[here], ts_ns, side="right") - 1
        inside = (found == _UNKNOWN) & (last >= 0) & (end[here][np.maximum(last, 0)] >= ts_ns)
        found[inside] = code[here][last[inside]]
    return found
