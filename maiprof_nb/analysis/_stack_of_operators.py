"""Which operator made an allocation, for traces whose memory events carry no stack."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

_NONE = -1
_PLAIN_ALLOCATIONS = frozenset(  # operators that only hand out memory: their caller says why
    {
        "aten::empty",
        "aten::empty_like",
        "aten::empty_strided",
        "aten::new_empty",
        "aten::new_empty_strided",
        "aten::resize_",
        "[memory]",
    }
)


def operator_stacks(
    operators: pd.DataFrame,
    python_calls: pd.DataFrame,
    events: pd.DataFrame,
    rows: pd.Series[Any],
) -> tuple[pd.Series[Any], pd.DataFrame]:
    """The operators and the Python call that enclose each allocation.

    Parameters
    ----------
    operators, python_calls, events : DataFrame
        Tables of one trace; `events` is its ``memory_events``.
    rows : Series of int
        Row of `events` that made each allocation; negative = not seen.

    Returns
    -------
    (Series of Int64, DataFrame)
        Stack of each allocation (missing where nothing encloses it), and the stacks:
        ``stack, label, frames``. Frames are operators from the innermost outwards, then the
        innermost Python call; the label is the first that does more than hand out memory.
    """
    made = rows.to_numpy(np.int64)
    seen = np.flatnonzero(made >= 0)
    at = events.iloc[made[seen]]
    enclosing, operator_names = _enclosing(operators, at)
    calls, call_names = _enclosing(_with_a_line(python_calls), at)
    innermost_call = np.full((1, len(at)), _NONE, dtype=np.int64)
    for level in calls:  # from the innermost
        innermost_call = np.where(innermost_call == _NONE, level, innermost_call)
    shift = len(operator_names)
    innermost_call = np.where(innermost_call == _NONE, _NONE, innermost_call + shift)
    names = operator_names + call_names
    chains, which = np.unique(
        np.concatenate([enclosing, innermost_call]), axis=1, return_inverse=True
    )
    frames = [[names[code] for code in chain if code != _NONE] for chain in chains.T]
    which = np.asarray(which, dtype=np.int64).reshape(-1)
    known = np.array([bool(texts) for texts in frames], dtype=bool)[which]
    stack = pd.array([pd.NA] * len(made), dtype="Int64")
    stack[seen[known]] = which[known]
    table = pd.DataFrame(
        {
            "stack": np.arange(len(frames), dtype=np.int64),
            "label": pd.Categorical([_label(texts) for texts in frames]),
            "frames": pd.Categorical(["\n".join(texts) for texts in frames]),
        }
    )
    return pd.Series(stack), table


def _with_a_line(python_calls: pd.DataFrame) -> pd.DataFrame:
    """Calls of Python code; built-ins say no more than the operator they are."""
    names = python_calls["name"]
    wanted = [code for code, text in enumerate(names.cat.categories) if text[:9] != "<built-in"]
    return python_calls[names.cat.codes.isin(wanted)]


def _label(frames: list[str]) -> str:
    telling = (text for text in frames if text not in _PLAIN_ALLOCATIONS)
    return next(telling, frames[0] if frames else "outside operators")


def _enclosing(ranges: pd.DataFrame, at: pd.DataFrame) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Names around each row of `at` on its own thread.

    Codes by level (rows, from the innermost) and by row of `at` (columns); -1 = none.
    """
    names = [str(name) for name in ranges["name"].cat.categories]
    if len(ranges) == 0 or len(at) == 0:
        return np.full((0, len(at)), _NONE, dtype=np.int64), names
    own_thread, asking_thread = _threads(ranges, at)
    start = ranges["ts_ns"].to_numpy(np.int64)
    end = start + ranges["dur_ns"].to_numpy(np.int64)
    code = ranges["name"].cat.codes.to_numpy(np.int64)
    ts_ns = at["ts_ns"].to_numpy(np.int64)
    parts: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = []
    for thread in np.unique(asking_thread):
        mine, asked = own_thread == thread, np.flatnonzero(asking_thread == thread)
        if mine.any():
            parts.append((asked, levels_around(start[mine], end[mine], code[mine], ts_ns[asked])))
    found = np.full((max((len(p) for _, p in parts), default=0), len(at)), _NONE, dtype=np.int64)
    for asked, levels in parts:
        found[len(found) - len(levels) :, asked] = levels
    return found, names


def _threads(
    ranges: pd.DataFrame, at: pd.DataFrame
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    both = pd.concat([frame[["pid", "tid"]].astype(str) for frame in (ranges, at)])
    codes = both.groupby(["pid", "tid"], sort=False).ngroup().to_numpy().astype(np.int64)
    return codes[: len(ranges)], codes[len(ranges) :]


def levels_around(
    start: npt.NDArray[np.int64],
    end: npt.NDArray[np.int64],
    code: npt.NDArray[np.int64],
    ts_ns: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """For one thread: the range of each depth around each moment, deepest first; -1 = none."""
    order = np.lexsort((-end, start))
    start, end, code = start[order], end[order], code[order]
    # depth of a range = ranges opened before it and not yet closed (they nest on a thread)
    depth = np.arange(len(start)) - np.searchsorted(np.sort(end), start, side="right")
    found = np.full((int(depth.max()) + 1, len(ts_ns)), _NONE, dtype=np.int64)
    for level in range(len(found)):
        here = np.flatnonzero(depth == level)
        if len(here) == 0:
            continue
        last = np.searchsorted(start[here], ts_ns, side="right") - 1
        inside = (last >= 0) & (end[here][np.maximum(last, 0)] >= ts_ns)
        found[len(found) - 1 - level, inside] = code[here][last[inside]]
    return found
