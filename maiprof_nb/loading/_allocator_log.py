"""The log of a memory snapshot, and the clock it runs on."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat
from operator import contains
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.loading._columns import column, integers, optional_integers
from maiprof_nb.loading.stacks import StackIds
from maiprof_nb.tables import SCHEMAS
from maiprof_nb.timebase import NS_PER_US, Clock

_WITHOUT_ADDRESS = ("oom", "snapshot")
_LAST_US = 2**62 // NS_PER_US  # the year 2116; nanoseconds of more leave no room to subtract

_Row = dict[str, Any]


def usable(traces: Sequence[Sequence[Any]]) -> list[list[_Row]]:
    """The events of each device that are dicts with an action."""
    return [list(trace) if _all_usable(trace) else _those_usable(trace) for trace in traces]


def _all_usable(trace: Sequence[Any]) -> bool:
    if not set(map(type, trace)) <= {dict}:
        return False
    return set(map(type, column(trace, "action"))) <= {str}


def _those_usable(trace: Sequence[Any]) -> list[_Row]:
    return [row for row in trace if isinstance(row, dict) and isinstance(row.get("action"), str)]


def clock(traces: Sequence[Sequence[_Row]]) -> tuple[Clock, int | None]:
    """The recording's clock, and the epoch microseconds of its time zero where it has times."""
    rows = [trace for trace in traces if trace]
    if not rows or not all(all(map(contains, trace, repeat("time_us"))) for trace in rows):
        return Clock(None, "event order; this snapshot has no times", ordered_only=True), None
    bounds = [(int(at.min()), int(at.max())) for at in (integers(t, "time_us") for t in rows)]
    zero_us, last_us = min(first for first, _ in bounds), max(last for _, last in bounds)
    if zero_us < 0 or last_us > _LAST_US:
        raise ValueError(f"time_us lies between {zero_us} and {last_us}")
    return Clock(zero_us * NS_PER_US, "time_us of the allocator's log", NS_PER_US), zero_us


def events(traces: Sequence[Sequence[_Row]], zero_us: int | None, ids: StackIds) -> pd.DataFrame:
    """The table `allocator_events`; without times, `ts_ns` counts the events of each device."""
    rows = list(chain.from_iterable(traces))
    action = pd.Categorical(column(rows, "action"))
    special = np.append(np.isin(action.categories.to_numpy(object), _WITHOUT_ADDRESS), False)
    address = optional_integers(rows, "addr")
    address[special[action.codes]] = pd.NA
    return SCHEMAS["allocator_events"].frame(
        {
            "event": np.arange(len(rows)),
            "ts_ns": _times(traces, rows, zero_us),
            "device": np.repeat(np.arange(len(traces)), [len(trace) for trace in traces]),
            "action": action,
            "address": address,
            "size_bytes": integers(rows, "size", default=0),
            "stream": integers(rows, "stream", default=0),
            "device_free_bytes": _device_free(rows, action),
            "stack": ids.of_each(column(rows, "frames")),
        }
    )


def _device_free(rows: Sequence[_Row], action: pd.Categorical) -> pd.arrays.IntegerArray:
    found = pd.arrays.IntegerArray(np.zeros(len(rows), np.int64), np.ones(len(rows), np.bool_))
    for row in np.flatnonzero(action == "oom").tolist():
        found[row] = rows[row].get("device_free", pd.NA)
    return found


def _times(
    traces: Sequence[Sequence[_Row]], rows: Sequence[_Row], zero_us: int | None
) -> npt.NDArray[np.int64]:
    if zero_us is None:
        orders = [np.arange(len(trace), dtype=np.int64) for trace in traces]
        return np.concatenate([np.empty(0, np.int64), *orders])
    return (integers(rows, "time_us") - zero_us) * NS_PER_US
