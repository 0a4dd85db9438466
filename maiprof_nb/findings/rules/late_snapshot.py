"""The allocator's log begins after most of the memory was taken."""

from __future__ import annotations

import numpy as np

from maiprof_nb import units
from maiprof_nb.analysis._device_logs import whole_logs
from maiprof_nb.analysis.active_memory import MemoryLog
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.findings.rule import Answer, Found, NotApplicable, Passed, Rule
from maiprof_nb.findings.rules._memory import live_rows, no_snapshot, on
from maiprof_nb.session import Session

BEFORE_SHARE = 0.5  # of what is live at the peak, older than the log: most has no history
RING_UNIT = 10_000  # entries: rings are set to round numbers, so a log of that length is full


def ask(session: Session) -> Answer:
    """Bytes live at the peak that are older than the log.

    Found from half of the peak, and where the ring of entries was full and blocks older than it
    are still met: their stacks and times were overwritten, and an earlier peak may be missing.
    A selected window is not asked: when the log began is a matter of the whole log.
    """
    try:
        logs = [log for log in whole_logs(session) if log.device.kind == "snapshot"]
    except NotAnswerableError:
        return NotApplicable(no_snapshot(session))
    if not logs:
        return NotApplicable(no_snapshot(session))
    logged = [log for log in logs if len(log.ts_ns) > 2 and log.device.axis != "state"]
    if not logged:
        return NotApplicable(
            "The snapshot holds a final state and no log. Call "
            "torch.cuda.memory._record_memory_history() before the memory is taken."
        )
    log = max(logged, key=_before)
    share = _before(log) / max(int(log.allocated_bytes.max()), 1)
    nameless = _before(log, nameless=True)
    full = _entries(session, log) if _before(log) else 0
    figure = (
        f"{units.size(_before(log))} of the {units.size(int(log.allocated_bytes.max()))} live at "
        f"the peak{on(session, log)} ({units.percent(share)}) are older than the log"
    )
    if share < BEFORE_SHARE and not full:
        return Passed(f"{figure}.")
    whose = f", {units.size(nameless)} of it without a stack" if nameless else ""
    ring = f"; its ring of {units.count(full)} entries was full" if full else ""
    return Found(
        title=f"{figure}{whose}{ring}",
        severity="medium" if full else "low",
        size_bytes=_before(log),
        evidence=[
            {
                "table": "allocator_events",
                "recording": log.device.recording,
                "device": log.device.device,
                "event": 0,
                "entries": full or None,
                "nameless_bytes": nameless,
            },
            *live_rows(log, 0),
        ],
        advice=_RING if full else None,
    )


def _before(log: MemoryLog, *, nameless: bool = False) -> int:
    """Bytes at the peak that were allocated before the log; only what has no stack."""
    lives, state = log.allocations, int(log.allocated_bytes.argmax())
    old = lives["before_log"].to_numpy(bool) & (lives["end_state"] > state).to_numpy(bool)
    if nameless:
        old &= lives["stack"].isna().to_numpy(bool)
    return int(lives["size_bytes"].to_numpy(np.int64)[old].sum())


def _entries(session: Session, log: MemoryLog) -> int:
    """Entries of a ring that was full, else 0."""
    events = session.recordings[log.device.recording].table("allocator_events")
    count = int((events["device"] == log.device.device).sum())
    return count if count and count % RING_UNIT == 0 else 0


_RING = (
    "Record with a larger max_entries, or dump the snapshot sooner after what is to be seen; "
    "each entry costs a few KB of host memory."
)
RULE = Rule(
    id="late-snapshot",
    question="Does the memory log begin after most memory was taken?",
    figures=("memory-curve",),
    view="memory",
    advice="Call torch.cuda.memory._record_memory_history() before the model is built, so that "
    "parameters and optimizer state have a stack.",
    change="1 line",
    ask=ask,
)
