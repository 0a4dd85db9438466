"""Free memory lies in holes between live blocks, where larger requests do not fit."""

from __future__ import annotations

from maiprof_nb import units
from maiprof_nb.analysis._device_logs import snapshot_logs
from maiprof_nb.analysis.held_memory import HeldMemory, held_memory
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.findings.rule import Answer, Found, NotApplicable, Passed, Rule, severity_of
from maiprof_nb.findings.rules._memory import NO_SNAPSHOT, on, segment_rows
from maiprof_nb.session import Session

STRANDED_SHARE = 0.05  # of what is reserved, free but in segments with live blocks
WHOLE_SHARE = 0.5  # of the stranded bytes in one hole: then a large request still fits
LEAST_BYTES = 134_217_728  # 128 MiB: less is the allocator's own rounding to segments


def ask(session: Session) -> Answer:
    """Free bytes in segments that also hold live blocks, at the end of the log.

    Found from 5 % of what is reserved, unless one hole has half of them. Such bytes can go back
    to the driver only once every block of their segment is freed. Wholly free segments are no
    fragmentation; `over-reservation` speaks of them.
    """
    try:
        logs = snapshot_logs(session)
    except NotAnswerableError:
        return NotApplicable(NO_SNAPSHOT)
    states = [(log, held) for log in logs if (held := held_memory(session, log.device))]
    if not states:
        return NotApplicable(NO_SNAPSHOT)
    log, held = max(states, key=lambda one: one[1].stranded_bytes)
    share = held.stranded_bytes / max(held.reserved_bytes, 1)
    figure = (
        f"{units.size(held.stranded_bytes)} ({units.percent(share)} of "
        f"{units.size(held.reserved_bytes)} reserved) are free in {units.count(held.holes)} holes "
        f"between live blocks{on(session, log)}, the largest {units.size(held.largest_hole_bytes)}"
    )
    whole = held.largest_hole_bytes >= WHOLE_SHARE * held.stranded_bytes
    if share < STRANDED_SHARE or held.stranded_bytes < LEAST_BYTES or whole:
        return Passed(f"{figure}.")
    return Found(
        title=figure,
        severity=severity_of(share),
        size_bytes=held.stranded_bytes,
        evidence=[_state(log.device.recording, log.device.device, held), *segment_rows(log, held)],
        advice=_EXPANDABLE if held.expandable else None,
    )


def _state(recording: int, device: int, held: HeldMemory) -> dict[str, object]:
    return {
        "table": "segments",
        "recording": recording,
        "device": device,
        "reserved_bytes": held.reserved_bytes,
        "allocated_bytes": held.allocated_bytes,
        "stranded_bytes": held.stranded_bytes,
        "cached_bytes": held.cached_bytes,
        "largest_free_bytes": held.largest_free_bytes,
    }


_EXPANDABLE = (
    "Segments are expandable already: allocate what lives long (parameters, optimizer state) "
    "before what lives short, and keep shapes the same from step to step."
)
RULE = Rule(
    id="fragmentation",
    question="Is free memory cut into holes too small to use?",
    figures=("memory-curve",),
    view="memory",
    advice="Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, so that free pages can move to "
    "where a request needs them; or allocate what lives long before what lives short.",
    change="1 line",
    ask=ask,
)
