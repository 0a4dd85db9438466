"""A request for memory failed, or the next one has no room."""

from __future__ import annotations

from typing import Any

import numpy as np

from maiprof_nb import units
from maiprof_nb.analysis._device_logs import snapshot_logs
from maiprof_nb.analysis._device_peaks import device_peak
from maiprof_nb.analysis.active_memory import MemoryLog
from maiprof_nb.analysis.device_size import device_size
from maiprof_nb.analysis.failed_requests import FailedRequest, failed_requests, would_be_served
from maiprof_nb.analysis.held_memory import held_memory
from maiprof_nb.analysis.memory_peak import OPTIMIZER
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.findings._wording import times
from maiprof_nb.findings.rule import Answer, Found, NotApplicable, Passed, Rule
from maiprof_nb.findings.rules._memory import holder_rows, live_rows, named, no_snapshot, on
from maiprof_nb.session import Session

FULL_SHARE = 0.999  # of what is reserved, in live blocks: no room is left within it
LEFT_SHARE = 0.05  # of the device, beyond what is reserved: less may be gone in the next step
IN_USE_SHARE = 0.9  # of what is reserved: below it the cache has room
LEAST_BYTES = 1_073_741_824  # 1 GiB reserved; a small job fills its segments by chance


def ask(session: Session) -> Answer:
    """Failed requests in the allocator's log; without any, how full the device is at the peak.

    For a failed request: what was asked for, free on the device, reserved, allocated, the largest
    hole, and whether the free bytes together would have served it (then whose blocks lie between
    them, and whether a replay with expandable segments serves it). Without one, found where 99.9 %
    of at least 1 GiB reserved is in live blocks, or where the device's size is known and less than
    5 % of it was left at the peak. In a selected window only its requests and its peak count.
    """
    logs = snapshot_logs(session)
    if not logs:
        return NotApplicable(no_snapshot(session))
    failed = [one for log in logs for one in _failed(session, log)]
    if failed:
        return max(failed, key=lambda one: one.size_bytes or 0)
    fullest = [one for log in logs if (one := _how_full(session, log))]
    if not fullest:
        return NotApplicable(
            "No request failed, and the log does not fit the segments, so how full they are is "
            "not known. Record with all actions, and dump right after what is to be seen."
        )
    return max(fullest, key=lambda one: (isinstance(one[1], Found), one[0]))[1]


def _failed(session: Session, log: MemoryLog) -> list[Found]:
    """The largest request of one device that failed."""
    try:
        failures = failed_requests(session, log.device)
    except NotAnswerableError:
        return _without_history(session, log)
    if not failures:
        return []
    worst = max(failures, key=lambda one: one.requested_bytes)
    free = worst.device_free_bytes
    driver = "" if free is None else f"{units.size(free)} free on the device, "
    count = "" if len(failures) == 1 else f" (the largest of {units.count(len(failures))})"
    title = (
        f"A request for {units.size(worst.requested_bytes)} failed{count}{on(session, log)}: "
        f"{driver}{units.size(worst.allocated_bytes)} of {units.size(worst.reserved_bytes)} "
        f"reserved in use, the largest free block {units.size(worst.largest_hole_bytes)}; "
    )
    evidence = [_row(log, worst), *_largest_live(log, worst)]
    if not worst.in_pieces:
        lacking = worst.requested_bytes - worst.fits_after_defragmentation_bytes
        said = f"{units.size(lacking)} too much is live"
        return [Found(title + said, "high", size_bytes=worst.requested_bytes, evidence=evidence)]
    said = (
        f"the {units.size(worst.fits_after_defragmentation_bytes)} free would serve it if they "
        f"were in one piece{_between(worst)}"
    )
    served = would_be_served(session, log.device, worst, expandable=True)
    return [
        Found(
            title + said,
            "high",
            size_bytes=worst.requested_bytes,
            evidence=[evidence[0], *holder_rows(log, worst.holders), *evidence[1:]],
            advice=_advice(worst, served),
            change="1 line",
        )
    ]


def _between(worst: FailedRequest) -> str:
    if worst.holders.empty:
        return ""
    first = worst.holders.iloc[0]
    return (
        f": {times(int(first['blocks']), 'block')} ({units.size(int(first['block_bytes']))}) of "
        f"{named(first['label'])} lie beside {units.size(int(first['held_bytes']))} of them"
    )


def _advice(worst: FailedRequest, served: bool | None) -> str:
    if served is None:
        return _IN_PIECES
    limit = units.size(worst.device_bytes or 0)
    if not served:
        return (
            "Make what the named lines hold before what lives short, or keep it on the host: "
            "expandable_segments:True alone does not do. Replayed with it, the same requests do "
            f"not fit in the {limit} the device had for this job."
        )
    return (
        f"Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True. Replayed with it, the same "
        f"requests and the one that failed fit in the {limit} the device had for this job; with "
        "the setting in force the model of the allocator repeats every request of this log at "
        f"its real address. {_ELSE}"
    )


def _without_history(session: Session, log: MemoryLog) -> list[Found]:
    """As `_failed` where the log does not fit the segments, so that holes are not known."""
    events = session.recordings[log.device.recording].table("allocator_events")
    failures = events[events["action"].eq("oom") & (events["device"] == log.device.device)]
    if failures.empty:
        return []
    worst = failures.loc[failures["size_bytes"].idxmax()]
    asked = int(worst["size_bytes"])
    row = {
        "table": "allocator_events",
        "recording": log.device.recording,
        "device": log.device.device,
        "event": int(worst["event"]),
        "requested_bytes": asked,
    }
    title = f"A request for {units.size(asked)} failed{on(session, log)}"
    return [Found(title, "high", size_bytes=asked, evidence=[row])]


def _row(log: MemoryLog, worst: FailedRequest) -> dict[str, Any]:
    return {
        "table": "allocator_events",
        "recording": log.device.recording,
        "device": log.device.device,
        "event": worst.event,
        "ts_ns": worst.ts_ns,
        "requested_bytes": worst.requested_bytes,
        "device_free_bytes": worst.device_free_bytes,
        "reserved_bytes": worst.reserved_bytes,
        "allocated_bytes": worst.allocated_bytes,
        "largest_free_bytes": worst.largest_hole_bytes,
        "cached_bytes": worst.cached_bytes,
        "fits_after_release_bytes": worst.fits_after_release_bytes,
        "fits_after_defragmentation_bytes": worst.fits_after_defragmentation_bytes,
        "line": _label(log, worst.stack),
    }


def _largest_live(log: MemoryLog, worst: FailedRequest) -> list[dict[str, Any]]:
    return live_rows(log, int(log.states_at(worst.ts_ns)))


def _how_full(session: Session, log: MemoryLog) -> tuple[float, Answer] | None:
    """Share of what is reserved in use at the peak, and what to say of it."""
    peak = device_peak(session, log)
    held = held_memory(session, log.device)
    reserved = peak.reserved_bytes
    if held is None or reserved is None or reserved < peak.peak_bytes:
        return None
    share = peak.peak_bytes / reserved
    size = device_size(session, log.device)
    left = None if size is None else max(size.size_bytes - reserved, 0)
    room = reserved - peak.peak_bytes
    logged = log.device.axis != "state"
    when = "at the peak" if logged else "in the state that was dumped"
    figure = (
        f"{units.size(peak.peak_bytes)} of {units.size(reserved)} reserved ({share * 100:.2f} %) "
        f"are in live blocks {when}{on(session, log)}"
    )
    beyond = "" if size is None or left is None else (
        f", and {units.size(left)} of the device's {units.size(size.size_bytes)} are left beyond it"
    )  # fmt: skip
    packed = share >= FULL_SHARE and reserved >= LEAST_BYTES
    scarce = size is not None and left is not None and left < LEFT_SHARE * size.size_bytes
    if (size is not None and not scarce) or (not packed and not (scarce and share >= IN_USE_SHARE)):
        failed = "No request failed" if logged else "Without a log no failed request is known"
        return share, Passed(f"{failed}; {figure}{beyond}.")
    where = "; the peak lies in the optimizer's step" if peak.phase == OPTIMIZER else ""
    largest = ""
    if peak.state == len(log.ts_ns) - 1 or share >= FULL_SHARE:
        largest = f", the largest free block at the end {units.size(held.largest_free_bytes)}"
    rows = live_rows(log, peak.state)
    row = {
        "table": "segments",
        "recording": log.device.recording,
        "device": log.device.device,
        "peak_bytes": peak.peak_bytes,
        "reserved_bytes": reserved,
        "room_bytes": room,
        "device_bytes": None if size is None else size.size_bytes,
        "left_on_device_bytes": left,
    }
    unknown = "" if size else " How much the device has beyond that, a snapshot does not say."
    return share, Found(
        title=f"Nearly full: {figure}, {units.size(room)} of room{largest}{beyond}{where}",
        severity="medium",
        size_bytes=peak.peak_bytes,
        evidence=[row, *rows],
        advice=f"{RULE.advice}{unknown}",
    )


def _label(log: MemoryLog, stack: int | None) -> str | None:
    row = np.flatnonzero(log.stacks["stack"].to_numpy(np.int64) == (-1 if stack is None else stack))
    return str(log.stacks["label"].iloc[int(row[0])]) if len(row) else None


_ELSE = (
    "Or keep what the named lines hold on the host, or make it before what lives short, so that it "
    "does not lie between."
)
_IN_PIECES = (
    "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: enough is free, but in pieces. " + _ELSE
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
