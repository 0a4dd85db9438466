"""``export_memory_timeline`` of torch.profiler: raw events, or bytes by category over time."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.errors import LoadError
from maiprof_nb.recording import Note, Recording
from maiprof_nb.tables import SCHEMAS
from maiprof_nb.timebase import NS_PER_US, Clock

NAME = "memory-timeline"

CATEGORIES = (  # by number in the file; in the sums one column before them is always 0
    "parameters", "optimizer state", "inputs", "temporaries", "activations", "gradients",
    "autograd details", "unknown",
)  # fmt: skip
_DESTROY = 4
_ACTIONS = range(1, _DESTROY + 1)  # there before, created, a new version, destroyed
_LARGEST = 2**61

_RAW = re.compile(rb"\s*\[\s*\[\s*(?:-1|\d{13,})\s*,\s*[1-4]\s*,\s*-?\d+\s*,\s*[0-7]\s*\]")
_SUMS = re.compile(rb"\s*\[\s*\[\s*(?:-1|\d{13,})(?:\.\d+)?\s*[,\]]")
_REMEDY = "Export again with torch.profiler's export_memory_timeline"

_Ints = npt.NDArray[np.int64]


def sniff(data: bytes) -> bool:
    """True for a list that begins as one of the two layouts does."""
    return bool(_RAW.match(data) or _SUMS.match(data))


def read(data: bytes, source: str) -> Recording:
    """Read the changes of every category.

    Raises
    ------
    LoadError
        If the file is damaged or holds nothing.

    Notes
    -----
    The file does not say which device it is of, nor stacks or addresses. The raw layout has one
    row an event, with times in epoch nanoseconds; the other has bytes by category at each point
    of time, in epoch microseconds, so that what came and went within a microsecond is not in it.
    """
    try:
        content = msgspec.json.decode(data)
        raw = _RAW.match(data) is not None
        changes = _checked(_events(content) if raw else _points(content))
    except (ValueError, TypeError, OverflowError, RecursionError) as problem:
        raise LoadError(
            f"is no readable memory timeline ({problem})", where=source, remedy=_REMEDY
        ) from problem
    zero_ns = int(changes["ts_ns"].min())
    unit = 1 if raw else NS_PER_US
    return Recording(
        source=source,
        kind="timeline",
        format=NAME,
        tables={
            "category_changes": SCHEMAS["category_changes"].frame(
                {
                    **{name: changes[name] for name in ("event", "size_bytes", "before_log")},
                    "ts_ns": changes["ts_ns"] - zero_ns,
                    "category": pd.Categorical.from_codes(changes["category"], list(CATEGORIES)),
                }
            )
        },
        clock=Clock(zero_ns, "time of the profiler's memory timeline", unit),
        notes=(_without(raw=raw),),
        events={"events" if raw else "points": len(content if raw else content[0])},
        meta={"single_events": raw},
    )


def _checked(changes: pd.DataFrame) -> pd.DataFrame:
    if changes.empty:
        raise ValueError("it holds no change of memory")
    if (changes[["ts_ns", "size_bytes"]].abs() > _LARGEST).any(axis=None):
        raise ValueError("a number is out of range")
    return changes


def _events(content: Any) -> pd.DataFrame:
    """``[[time_ns or -1, action, bytes, category], ...]``."""
    table = _whole_numbers(content, 4)
    if not np.isin(table[:, 1], _ACTIONS).all() or not np.isin(table[:, 3], range(8)).all():
        raise ValueError("an action or category is not one of PyTorch's")
    before = table[:, 0] < 0
    timed = table[~before, 0]
    ts_ns = np.where(before, timed.min() if len(timed) else 0, table[:, 0])
    return pd.DataFrame(
        {
            "event": np.arange(len(table)),
            "ts_ns": np.maximum.accumulate(ts_ns),
            "category": table[:, 3],
            "size_bytes": table[:, 2],
            "before_log": before,
        }
    )


def _points(content: Any) -> pd.DataFrame:
    """``[[time_us, ...], [[bytes by category], ...]]``: what differs from the point before."""
    if len(content) != 2 or len(content[0]) != len(content[1]):
        raise ValueError("it is not one list of times and one of as many sums")
    time_us = np.array(content[0], dtype=np.float64)
    if not np.isfinite(time_us).all():
        raise ValueError("a time is no number")
    sums = _whole_numbers(content[1], 1 + len(CATEGORIES))[:, 1:]
    change = np.diff(sums, axis=0, prepend=np.zeros((min(len(sums), 1), sums.shape[1]), np.int64))
    row, category = np.nonzero(change)
    return pd.DataFrame(
        {
            "event": row,
            "ts_ns": np.maximum.accumulate(np.round(time_us).astype(np.int64))[row] * NS_PER_US,
            "category": category,
            "size_bytes": change[row, category],
            "before_log": row == 0,
        }
    )


def _whole_numbers(rows: Any, width: int) -> _Ints:
    if not isinstance(rows, list) or not all(
        isinstance(row, list) and len(row) == width for row in rows
    ):
        raise ValueError(f"its rows are not {width} numbers each")
    return np.array(rows, dtype=np.int64).reshape(-1, width)


def _without(*, raw: bool) -> Note:
    text = "The file has no stacks and no addresses, and does not say which device it is of"
    more = "." if raw else "; within a microsecond only the sum of all changes is known."
    return Note("categories-only", text + more)
