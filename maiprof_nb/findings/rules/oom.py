"""A request for memory failed, or the next one has no room."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis._device_logs import snapshot_logs
from maiprof_nb.analysis.active_memory import MemoryLog
from maiprof_nb.analysis.held_memory import HeldMemory, held_memory
from maiprof_nb.analysis.memory_peak import OPTIMIZER, peak_of
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.findings.rule import Answer, Found, NotApplicable, Passed, Rule
from maiprof_nb.findings.rules._memory import NO_SNAPSHOT, live_rows, on, segment_rows
from maiprof_nb.session import Session

FULL_SHARE = 0.999  # of what is reserved, in live blocks: no room is left within it
LEAST_BYTES = 1_073_741_824  # 1 GiB reserved; a small job fills its segments by chance


def ask(session: Session) -> Answer:
    """Failed requests in the allocator's log; without any, how full what is reserved is.

    For a failed request: what was asked for, free on the device, reserved, allocated, and whether
    the free bytes together would have served it (then fragmentation made it fail). Without one,
    found where 99.9 % of at least 1 GiB reserved is in live blocks: the size of the device is not
    in a snapshot, so that is medium, a next request must come from whatever the device still has.
    """
    try:
        logs = snapshot_logs(session)
    except NotAnswerableError:
        return NotApplicable(NO_SNAPSHOT)
    states = [(log, held_memory(session, log.device)) for log in logs]
    failed = [one for log, held in states for one in _failed(session, log, held)]
    if failed:
        return max(failed, key=lambda one: one.size_bytes or 0)
    fullest = max(
        ((log, held) for log, held in states if held),
        key=lambda one: one[1].allocated_bytes / max(one[1].reserved_bytes, 1),
        default=None,
    )
    if fullest is None:
        return NotApplicable(NO_SNAPSHOT)
    return _how_full(session, *fullest)


def _failed(session: Session, log: MemoryLog, held: HeldMemory | None) -> list[Found]:
    """The largest request of one device that failed."""
    events = session.recordings[log.device.recording].table("allocator_events")
    events = events[events["device"] == log.device.device]
    failures = events[events["action"] == "oom"]
    if failures.empty:
        return []
    worst = failures.loc[failures["size_bytes"].idxmax()]
    offset = session.placements[log.device.recording].offset_ns
    at_ns = int(worst["ts_ns"]) + offset
    state = int(log.states_at(at_ns))
    asked = int(worst["size_bytes"])
    free = None if pd.isna(worst["device_free_bytes"]) else int(worst["device_free_bytes"])
    allocated = int(log.allocated_bytes[state])
    reserved = allocated if log.reserved_bytes is None else int(log.reserved_bytes[state])
    within = max(reserved - allocated, 0)
    changing = events["action"].isin(["oom", "snapshot"])
    last = changing | (events["event"] < worst["event"])
    hole = held.largest_free_bytes if held is not None and bool(last.all()) else None
    would_fit = asked <= (free or 0) + within
    said = [
        f"{units.size(free)} free on the device" if free is not None else "",
        f"{units.size(allocated)} of {units.size(reserved)} reserved in use",
        f"the largest free block {units.size(hole)}" if hole is not None else "",
    ]
    verdict = (
        f"the {units.size((free or 0) + within)} free would serve it if they were in one piece"
        if would_fit
        else f"{units.size(asked - (free or 0) - within)} too much is live"
    )
    count = "" if len(failures) == 1 else f" (the largest of {units.count(len(failures))})"
    row: dict[str, Any] = {
        "table": "allocator_events",
        "recording": log.device.recording,
        "device": log.device.device,
        "event": int(worst["event"]),
        "ts_ns": at_ns,
        "requested_bytes": asked,
        "device_free_bytes": free,
        "reserved_bytes": reserved,
        "allocated_bytes": allocated,
        "largest_free_bytes": hole,
        "line": _label(log, worst["stack"]),
    }
    rows = [row, *live_rows(log, state)]
    if would_fit and held is not None:
        rows += segment_rows(log, held, 3)
    parts = ", ".join(part for part in said if part)
    return [
        Found(
            title=f"A request for {units.size(asked)} failed{count}{on(session, log)}: {parts}; "
            f"{verdict}",
            severity="high",
            size_bytes=asked,
            evidence=rows,
            advice=_IN_PIECES if would_fit else None,
            change="1 line" if would_fit else None,
        )
    ]


def _how_full(session: Session, log: MemoryLog, held: HeldMemory) -> Answer:
    share = held.allocated_bytes / max(held.reserved_bytes, 1)
    figure = (
        f"{units.size(held.allocated_bytes)} of {units.size(held.reserved_bytes)} reserved "
        f"({share * 100:.2f} %) are in live blocks at the end{on(session, log)}"
    )
    if share < FULL_SHARE or held.reserved_bytes < LEAST_BYTES:
        return Passed(f"No request failed; {figure}.")
    peak = peak_of(session, log)
    where = "; the peak lies in the optimizer's step" if peak.phase == OPTIMIZER else ""
    return Found(
        title=f"Nearly full: {figure}, the largest free block is "
        f"{units.size(held.largest_free_bytes)}{where}",
        severity="medium",
        size_bytes=held.allocated_bytes,
        evidence=live_rows(log, len(log.ts_ns) - 1),
    )


def _label(log: MemoryLog, stack: Any) -> str | None:
    if pd.isna(stack):
        return None
    row = np.flatnonzero(log.stacks["stack"].to_numpy(np.int64) == int(stack))
    return str(log.stacks["label"].iloc[int(row[0])]) if len(row) else None


_IN_PIECES = (
    "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: enough is free, but in pieces. See "
    "fragmentation for the blocks between them."
)
RULE = Rule(
    id="oom",
    question="Did a request for memory fail, or is the device nearly full?",
    figures=("memory-curve", "memory-peak"),
    view="memory",
    advice="Make less live at once: halve the batch and accumulate gradients, checkpoint "
    "activations, zero_grad(set_to_none=True) before the forward pass, del what the named lines "
    "no longer need. A multi-tensor (foreach) optimizer needs temporaries as large as the "
    "parameters: fused=True or foreach=False does without.",
    change="1 to 3 lines",
    ask=ask,
)
