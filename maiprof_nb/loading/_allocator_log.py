"""The log of a memory snapshot, and the clock it runs on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.loading._columns import integers, optional_integers
from maiprof_nb.loading.stacks import StackIds
from maiprof_nb.tables import SCHEMAS
from maiprof_nb.timebase import NS_PER_US, Clock

_WITHOUT_ADDRESS = ("oom", "snapshot")

_Row = dict[str, Any]


def usable(traces: Sequence[Sequence[Any]]) -> list[list[_Row]]:
    """The events of each device that are dicts with an action."""
    return [
        [row for row in trace if isinstance(row, dict) and isinstance(row.get("action"), str)]
        for trace in traces
    ]


def clock(traces: Sequence[Sequence[_Row]]) -> tuple[Clock, int | None]:
    """The recording's clock, and the epoch microseconds of its time zero where it has times."""
    rows = [row for trace in traces for row in trace]
    if not rows or any("time_us" not in row for row in rows):
        return Clock(None, "event order; this snapshot has no times", ordered_only=True), None
    zero_us = int(integers(rows, "time_us").min())
    return Clock(zero_us * NS_PER_US, "time_us of the allocator's log", NS_PER_US), zero_us


def events(traces: Sequence[Sequence[_Row]], zero_us: int | None, ids: StackIds) -> pd.DataFrame:
    """The table `allocator_events`; without times, `ts_ns` counts the events of each device."""
    rows = [row for trace in traces for row in trace]
    action = pd.Series([row["action"] for row in rows], dtype="str")
    address = pd.Series(optional_integers(rows, "addr"))
    return SCHEMAS["allocator_events"].frame(
        {
            "event": np.arange(len(rows)),
            "ts_ns": _times(traces, rows, zero_us),
            "device": np.repeat(np.arange(len(traces)), [len(trace) for trace in traces]),
            "action": action,
            "address": address.mask(action.isin(_WITHOUT_ADDRESS)),
            "size_bytes": integers(rows, "size", default=0),
            "stream": integers(rows, "stream", default=0),
            "device_free_bytes": optional_integers(rows, "device_free"),
            "stack": pd.array([ids.of(row.get("frames")) for row in rows], dtype="Int64"),
        }
    )


def _times(
    traces: Sequence[Sequence[_Row]], rows: Sequence[_Row], zero_us: int | None
) -> npt.NDArray[np.int64]:
    if zero_us is None:
        orders = [np.arange(len(trace), dtype=np.int64) for trace in traces]
        return np.concatenate([np.empty(0, np.int64), *orders])
    return (integers(rows, "time_us") - zero_us) * NS_PER_US
