"""The allocator holds far more of the device than the job uses."""

from __future__ import annotations

from maiprof_nb import units
from maiprof_nb.analysis._device_logs import snapshot_logs
from maiprof_nb.analysis.active_memory import MemoryLog
from maiprof_nb.analysis.stranded_memory import Moment, stranded_memory
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.findings._wording import times
from maiprof_nb.findings.rule import Answer, Found, NotApplicable, Passed, Rule
from maiprof_nb.findings.rules._memory import no_snapshot, on
from maiprof_nb.session import Session

UNUSED_SHARE = 0.5  # of what is reserved, at the end of the log
CACHED_SHARE = 0.2  # of what is reserved, in wholly free segments that the log never needed
LEAST_BYTES = 536_870_912  # 512 MiB: less is not worth an edit on any card
NEVER_SHARE = 0.8  # of what is reserved: a lower peak did not fill the cache
NEEDED_SHARE = 0.7  # of what is reserved, once allocated: then the cache is only waiting


def ask(session: Session) -> Answer:
    """Reserved against allocated bytes at the end of the log.

    Found from one half unused, or from one fifth in wholly free segments where no moment of the
    log needed 80 % of what is reserved. The severity is low where the log shows that the job once
    needed 70 %: the cache then waits for the next such moment, and is a loss only to other
    processes on the device. In a selected window its end and its peak count.
    """
    ends, reason = [], no_snapshot(session)
    for log in snapshot_logs(session):
        try:
            stranded = stranded_memory(session, log.device, points=1)
        except NotAnswerableError as problem:
            reason = problem.sentence
            continue
        if stranded is not None and stranded.end.reserved_bytes:
            ends.append((log, stranded.end))
    if not ends:
        return NotApplicable(reason)
    log, end = max(ends, key=lambda one: one[1].unused_bytes)
    return _of_device(session, log, end)


def _of_device(session: Session, log: MemoryLog, end: Moment) -> Answer:
    peak = int(log.allocated_bytes.max())
    share = end.unused_bytes / end.reserved_bytes
    figure = (
        f"{units.percent(share)} of {units.size(end.reserved_bytes)} reserved is unused at the "
        f"end{on(session, log)}"
    )
    needed = min(peak / end.reserved_bytes, 1.0)
    never = end.cached_bytes >= CACHED_SHARE * end.reserved_bytes and needed < NEVER_SHARE
    if not (share >= UNUSED_SHARE or never) or end.unused_bytes < LEAST_BYTES:
        return Passed(f"{figure}.")
    whole = "none of it in wholly free segments"
    if end.cached_segments:
        count = times(end.cached_segments, "wholly free segment")
        whole = f"{units.size(end.cached_bytes)} of it in {count}, which empty_cache() gives back"
    once = f"; at the peak of the log {units.percent(needed)} are in use"
    return Found(
        title=f"{figure}, {whole}{once if log.device.axis != 'state' else ''}",
        severity="low" if needed >= NEEDED_SHARE else "medium",
        size_bytes=end.unused_bytes,
        evidence=[
            {
                "table": "segments",
                "recording": log.device.recording,
                "device": log.device.device,
                "ts_ns": end.ts_ns,
                "reserved_bytes": end.reserved_bytes,
                "allocated_bytes": end.allocated_bytes,
                "cached_bytes": end.cached_bytes,
                "cached_segments": end.cached_segments,
                "stranded_bytes": end.stranded_bytes,
                "peak_bytes": peak,
            }
        ],
        advice=_IN_PIECES if end.stranded_bytes > end.cached_bytes else None,
    )


_IN_PIECES = (
    "empty_cache() would give little back: most of it lies between live blocks (see fragmentation)."
)
RULE = Rule(
    id="over-reservation",
    question="Does the allocator hold much more memory than the job uses?",
    figures=("memory-curve",),
    view="memory",
    advice="Call torch.cuda.empty_cache() once after the phase that needed it (set-up, validation, "
    "autotuning), never in the loop; lower the peak that filled the cache where the device is "
    "shared.",
    change="1 line",
    ask=ask,
)
