"""Much of the device's memory is never used, so a larger batch would fit."""

from __future__ import annotations

from maiprof_nb import units
from maiprof_nb.analysis.memory_use import MemoryUse, memory_use
from maiprof_nb.findings.rule import Answer, Found, NotApplicable, Passed, Rule
from maiprof_nb.session import Session

ROOMY_SHARE = 0.6  # of the device; above it, doubling the batch may well not fit
KEEP_SHARE = 0.05  # of the device, left for fragmentation and libraries


def ask(session: Session) -> Answer:
    """Most memory in use on the fullest device against what it has."""
    uses = memory_use(session)
    if not uses:
        return NotApplicable(
            "Nothing says how much of the device's memory was used. Sample memory.used and "
            "memory.total beside the job, or record with profile_memory=True or a memory snapshot."
        )
    use = max(uses, key=lambda one: one.share)
    figure = f"{units.percent(use.share)} of the device's memory ({use.how})"
    if use.share > ROOMY_SHARE:
        return Passed(f"At most {figure} is used.")
    spare = int(use.total_bytes * (1 - KEEP_SHARE)) - use.peak_bytes
    factor = use.total_bytes * (1 - KEEP_SHARE) / max(use.peak_bytes, 1)
    return Found(
        title=f"At most {figure} is used: with {units.percent(KEEP_SHARE)} kept back, "
        f"{units.size(spare)} are free, room for a batch {_times(factor)} as large or larger",
        severity="medium",
        size_bytes=spare,
        evidence=[_row(one, factor if one is use else None) for one in uses],
    )


def _times(factor: float) -> str:
    return f"{factor:.1f} times" if factor < 10 else "more than 10 times"


def _row(use: MemoryUse, factor: float | None) -> dict[str, object]:
    """`least_factor` takes all memory to grow with the batch; weights and optimizer do not."""
    row: dict[str, object] = {
        "table": use.table,
        "recording": use.recording,
        "device": use.device,
        "peak_bytes": use.peak_bytes,
        "total_bytes": use.total_bytes,
        "measured": use.how,
    }
    return row if factor is None else row | {"least_factor": round(factor, 2)}


RULE = Rule(
    id="memory-headroom",
    question="Would a larger batch fit into the device's memory?",
    figures=(),  # samplers, snapshots or traces: whichever there is answers
    view="memory",
    advice="Double the batch size, and adapt the learning rate. The factor is the least that "
    "fits: it takes all memory in use to grow with the batch, while weights, gradients and "
    "optimizer state do not. How many bytes a sample needs is not known from one batch size.",
    change="2 settings",
    ask=ask,
)
