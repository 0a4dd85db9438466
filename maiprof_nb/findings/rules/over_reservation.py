"""The allocator holds far more of the device than the job uses."""

from __future__ import annotations

from maiprof_nb import units
from maiprof_nb.analysis._device_logs import snapshot_logs
from maiprof_nb.analysis.held_memory import held_memory
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.findings.rule import Answer, Found, NotApplicable, Passed, Rule
from maiprof_nb.findings.rules._memory import NO_SNAPSHOT, on
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
    processes on the device.
    """
    try:
        logs = snapshot_logs(session)
    except NotAnswerableError:
        return NotApplicable(NO_SNAPSHOT)
    states = [(log, held) for log in logs if (held := held_memory(session, log.device))]
    if not states:
        return NotApplicable(NO_SNAPSHOT)
    log, held = max(states, key=lambda one: one[1].reserved_bytes - one[1].allocated_bytes)
    unused = held.reserved_bytes - held.allocated_bytes
    figure = (
        f"{units.percent(held.unused_share)} of {units.size(held.reserved_bytes)} reserved is "
        f"unused at the end{on(session, log)}"
    )
    peak = int(log.allocated_bytes.max())
    needed = min(peak / max(held.reserved_bytes, 1), 1.0)
    cached = held.cached_bytes / max(held.reserved_bytes, 1)
    never = cached >= CACHED_SHARE and needed < NEVER_SHARE
    if not (held.unused_share >= UNUSED_SHARE or never) or unused < LEAST_BYTES:
        return Passed(f"{figure}.")
    whole = f"{units.size(held.cached_bytes)} of it in {held.cached_segments} wholly free segments"
    return Found(
        title=f"{figure}, {whole}; at the peak of the log {units.percent(needed)} are in use",
        severity="low" if needed >= NEEDED_SHARE else "medium",
        size_bytes=unused,
        evidence=[
            {
                "table": "segments",
                "recording": log.device.recording,
                "device": log.device.device,
                "reserved_bytes": held.reserved_bytes,
                "allocated_bytes": held.allocated_bytes,
                "cached_bytes": held.cached_bytes,
                "cached_segments": held.cached_segments,
                "stranded_bytes": held.stranded_bytes,
                "peak_bytes": peak,
            }
        ],
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
