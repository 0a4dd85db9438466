"""The Python frames that old traces keep as text with their operators, as calls."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._nesting import parents

Ints = npt.NDArray[np.int64]

_PLACE = ["recording", "ts_ns", "dur_ns", "pid", "tid"]


def frames_of_stacks(operators: pd.DataFrame) -> pd.DataFrame:
    """The frames around each operator that has a stack, the outermost first.

    Parameters
    ----------
    operators : DataFrame
        Rows of the table.

    Returns
    -------
    DataFrame
        ``recording``, ``name`` (category), ``ts_ns``, ``dur_ns``, ``pid``, ``tid``: one row a
        frame, as long as the operator.

    Notes
    -----
    An operator inside another with a stack is called from C++ and repeats the stack; only
    what its own has beyond that of the other becomes rows.
    """
    stacked = operators[operators["call_stack"].notna()]
    start = stacked["ts_ns"].to_numpy(np.int64)
    lane = stacked.groupby(["recording", "pid", "tid"], observed=True, dropna=False).ngroup()
    parent = parents(lane.to_numpy(np.int64), start, start + stacked["dur_ns"].to_numpy(np.int64))
    stack = stacked["call_stack"].cat.codes.to_numpy(np.int64)
    around = np.where(parent >= 0, stack[parent], -1) if len(stack) else stack
    pairs, which = np.unique(np.stack((stack, around)), axis=1, return_inverse=True)
    texts = stacked["call_stack"].cat.categories
    added = [_added(texts[one], texts[outer] if outer >= 0 else "") for one, outer in pairs.T]
    names, categories = pd.factorize(
        np.array([frame for frames in added for frame in frames], dtype=object)
    )
    size = np.array([len(frames) for frames in added], dtype=np.int64)
    first = np.cumsum(size) - size
    which = np.asarray(which, dtype=np.int64).reshape(-1)
    counts = size[which]
    offset = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    code = names[np.repeat(first[which], counts) + offset]
    rows = stacked[_PLACE].iloc[np.repeat(np.arange(len(stacked)), counts)]
    name = pd.Categorical.from_codes(code, categories=pd.Index(categories, dtype="str"))
    return rows.reset_index(drop=True).assign(name=name)


def _added(stack: str, around: str) -> list[str]:
    """Frames from the outermost inwards, without the other stack's where it begins with them."""
    frames, outer = _frames(stack), _frames(around)
    return frames[len(outer) :] if frames[: len(outer)] == outer else frames


def _frames(stack: str) -> list[str]:
    """Frames of a stack as the file writes it, innermost first, from the outermost inwards."""
    return [frame for one in reversed(stack.split(";")) if (frame := one.strip())]
