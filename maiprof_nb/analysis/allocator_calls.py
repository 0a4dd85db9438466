"""Memory that goes between the allocator and the driver once the job is warm."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from maiprof_nb.analysis._allocator_history import allocator_history
from maiprof_nb.analysis._allocator_replay import retries
from maiprof_nb.analysis._by_step import step_rows
from maiprof_nb.analysis.active_memory import memory_devices
from maiprof_nb.analysis.steps import figure_window, steps
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.session import Session

# Names of calls that take memory from the driver or give it back.
_CALLS = (
    r"^(?:cuda|hip)(?:Malloc|Free|HostAlloc|HostFree|MallocHost|FreeHost|HostMalloc"
    r"|HostRegister|HostUnregister)(?!\w*Async)\w*|^cuMem(?:Alloc|Free|Create|Release|Map|Unmap)"
)
_WARM_FROM = 0.5  # of the log, where no steps say when the loop began


@dataclass(frozen=True)
class DriverCalls:
    """Calls in steps after the first recorded one of each recording.

    ``rows`` are of the table ``launches`` with ``step``, of the recording that has most of
    them a step; ``a_step`` is their number a step.
    """

    rows: pd.DataFrame
    a_step: float


@dataclass(frozen=True)
class Turnover:
    """Segments given back to the driver after the warm-up, and those taken again after it.

    Of `returned_bytes`, `for_room_bytes` were followed at once by a new segment, with which
    more would have been reserved than ever was: the device was full.
    """

    returned: int
    returned_bytes: int
    retaken: int
    for_room_bytes: int = 0
    evidence: list[dict[str, Any]] = field(default_factory=list)

    @property
    def for_room(self) -> bool:
        """Most of it went back because the device was full."""
        return 2 * self.for_room_bytes > self.returned_bytes


def driver_calls(session: Session) -> DriverCalls | None:
    """Calls that move memory between allocator and driver in steps after the first.

    None where no recording has two steps and calls of the runtime.
    """
    marks = steps(session)
    launches = session.table("launches")
    sizes = marks.groupby("recording")["step"].transform("size")
    marks = marks[(sizes > 1) & marks["recording"].isin(launches["recording"])]
    marks = marks.reset_index(drop=True)
    if marks.empty:
        return None
    names = launches["name"].cat.categories
    rows = launches[launches["name"].isin(names[names.str.contains(_CALLS)])]
    row = step_rows(marks, rows["recording"].to_numpy(np.int64), rows["ts_ns"].to_numpy(np.int64))
    first = marks.groupby("recording")["ts_ns"].idxmin().to_numpy()
    warm = (row >= 0) & ~np.isin(row, first)
    found = rows[warm].assign(step=marks["step"].to_numpy(np.int64)[row[warm]], line=None)
    if found.empty:
        return DriverCalls(found, 0.0)
    counts = found.groupby("recording").size()
    each = counts / (marks.groupby("recording").size() - 1).reindex(counts.index)
    worst = each.idxmax()
    return DriverCalls(found[found["recording"] == worst], float(each[worst]))


def segment_turnover(session: Session) -> Turnover | None:
    """Segments that snapshots show to be given back once warm; None without an allocator's log.

    Warm is after the first recorded step, or without steps in the second half of the log.
    """
    log = session.table("allocator_events")
    if log.empty:
        return None
    log = log[log["action"].isin(["segment_free", "segment_alloc", "segment_unmap", "segment_map"])]
    late = log[log["ts_ns"] >= _warm_from(session)]
    back = late[late["action"].isin(["segment_free", "segment_unmap"])]
    taken = late[late["action"].isin(["segment_alloc", "segment_map"])]
    if back.empty:
        return Turnover(0, 0, 0)
    again = taken[taken["ts_ns"] > back["ts_ns"].min()]
    labels = session.table("stacks").set_index(["recording", "stack"])["label"]
    evidence = [
        {
            "table": "allocator_events",
            "recording": int(row["recording"]),
            "event": int(row["event"]),
            "ts_ns": int(row["ts_ns"]),
            "action": str(row["action"]),
            "size_bytes": int(row["size_bytes"]),
            "stack": None
            if pd.isna(row["stack"])
            else str(labels.get((row["recording"], row["stack"]), "")) or None,
        }
        for row in back.nlargest(5, "size_bytes").to_dict("records")
    ]
    for_room = back.set_index(["recording", "event"]).index.isin(_returned_for_room(session))
    size = back["size_bytes"].to_numpy(np.int64)
    return Turnover(len(back), int(size.sum()), len(again), int(size[for_room].sum()), evidence)


def _returned_for_room(session: Session) -> list[tuple[int, int]]:
    """Recording and event of each segment that went back to serve a request."""
    found: list[tuple[int, int]] = []
    for device in memory_devices(session.whole):
        if device.kind != "snapshot":
            continue
        try:
            events = retries(allocator_history(session, device))
        except NotAnswerableError:
            continue
        found += [(device.recording, event) for event in events]
    return found


def _warm_from(session: Session) -> int:
    marks = steps(session)
    if len(marks):
        first = marks.sort_values("ts_ns").iloc[0]
        return int(first["ts_ns"] + first["dur_ns"])
    log = session.whole.table("allocator_events")  # a window does not move the warm-up
    whole = session.selected_window or figure_window(session).window
    low, high = int(log["ts_ns"].min()), int(log["ts_ns"].max())
    return max(whole.start_ns, low + int(_WARM_FROM * (high - low)))
