"""Much of the device's memory is never used, so a larger batch would fit."""

from __future__ import annotations

from collections.abc import Sequence

from maiprof_nb import units
from maiprof_nb.analysis._device_logs import device_logs
from maiprof_nb.analysis.active_memory import MemoryLog
from maiprof_nb.analysis.batch_memory import MEASURED, BatchMemory, batch_memory
from maiprof_nb.analysis.memory_cycles import cycles_of
from maiprof_nb.analysis.memory_use import MemoryUse, memory_use
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.findings.rule import Answer, Found, NotApplicable, Passed, Rule
from maiprof_nb.session import Session

ROOMY_SHARE = 0.6  # of the device; above it, doubling the batch may well not fit
KEEP_SHARE = 0.05  # of the device, left for fragmentation and libraries


def ask(session: Session) -> Answer:
    """Most memory in use on the fullest device against what it has, and bytes a sample.

    Bytes a sample are the slope of the steps' peaks over their batch sizes, where they differ;
    else what comes and goes in the step with the peak, over its size (activations and
    temporaries; parameters, gradients and optimizer state do not grow with the batch). The batch
    could grow by what is free, less 5 % of the device, over that. Without shapes of inputs, marked
    steps and a memory log the size is unknown and only bytes are told. In a selected window its
    peak and its steps count.
    """
    uses = memory_use(session)
    if not uses:
        return NotApplicable(
            "Nothing says how much of the device's memory was used. Sample memory.used and "
            "memory.total beside the job, or record with profile_memory=True or a memory snapshot."
        )
    use = max(uses, key=lambda one: one.share)
    each = _each(session, use)
    figure = f"{units.percent(use.share)} of the device's memory ({use.how})"
    spare = int(use.total_bytes * (1 - KEEP_SHARE)) - use.peak_bytes
    kept = f"with {units.percent(KEEP_SHARE)} kept back, {units.size(max(spare, 0))} are free"
    sample = "" if each is None else f"; {_sample(each)}"
    if use.share > ROOMY_SHARE:
        return Passed(f"At most {figure} is used: {kept}{sample}.")
    factor = use.total_bytes * (1 - KEEP_SHARE) / max(use.peak_bytes, 1)
    room = (
        f"room for a batch {_times(factor)} as large or larger (bytes a sample are not known)"
        if each is None
        else f"room for {_more(spare, each)}"
    )
    return Found(
        title=f"At most {figure} is used: {kept}{sample}: {room}",
        severity="medium",
        size_bytes=spare,
        evidence=[_row(one, factor, each) if one is use else _row(one) for one in uses],
        advice=(_UNKNOWN if each is None else _advice(spare, each)) + _leak(session, use),
    )


def _leak(session: Session, use: MemoryUse) -> str:
    try:
        logs = device_logs(session)
        cycles = [cycles_of(session, log) for log in _those_of(use, logs)[:1]]
    except NotAnswerableError:
        return ""
    return _RISES if any(one.rising for one in cycles) else ""


def _those_of(use: MemoryUse, logs: Sequence[MemoryLog]) -> list[MemoryLog]:
    """Logs of the device in question, else all; the fullest first."""
    mine = [log for log in logs if str(log.device.device) == use.device] or list(logs)
    return sorted(mine, key=lambda log: -int(log.allocated_bytes.max()))


def _each(session: Session, use: MemoryUse) -> BatchMemory | None:
    """Bytes a sample on the device in question, or on the fullest whose log there is."""
    try:
        logs = device_logs(session)
    except NotAnswerableError:
        return None
    found = (batch_memory(session, log) for log in _those_of(use, logs)[:1])
    return next((one for one in found if one is not None), None)


def _sample(each: BatchMemory) -> str:
    how = "measured over steps of different size" if each.how == MEASURED else (
        f"what comes and goes at the peak over a batch of {units.count(each.batch)}"
    )  # fmt: skip
    low, high = units.size(each.low_bytes), units.size(each.high_bytes)
    width = "" if low == high else f", {low} to {high}"
    return f"a sample takes {units.size(each.bytes_per_sample)} ({how}{width})"


def _more(spare: int, each: BatchMemory) -> str:
    more = int(spare // each.bytes_per_sample)
    total = each.batch + more
    return (
        f"{units.count(more)} samples more, a batch of {units.count(total)} instead of "
        f"{units.count(each.batch)} ({_times(total / each.batch)})"
    )


def _advice(spare: int, each: BatchMemory) -> str:
    cautious = int(spare // max(each.bytes_per_sample, each.high_bytes))
    said = (
        f"Raise the batch size by up to {units.count(cautious)} samples; when training, adapt the "
        "learning rate."
    )
    if each.how == MEASURED:
        return said
    return (
        f"{said} Bytes a sample are read off one batch size: they take all that comes and goes to "
        "grow with it. Two steps of another size in one recording would measure them."
    )


def _times(factor: float) -> str:
    return f"{factor:.1f} times" if factor < 10 else "more than 10 times"


def _row(
    use: MemoryUse, factor: float | None = None, each: BatchMemory | None = None
) -> dict[str, object]:
    """`least_factor` takes all memory to grow with the batch; weights and optimizer do not."""
    row: dict[str, object] = {
        "table": use.table,
        "recording": use.recording,
        "device": use.device,
        "peak_bytes": use.peak_bytes,
        "total_bytes": use.total_bytes,
        "measured": use.how,
    }
    if factor is not None:
        row["least_factor"] = round(factor, 2)
    if each is not None:
        row |= {
            "batch": each.batch,
            "bytes_per_sample": round(each.bytes_per_sample),
            "low_bytes_per_sample": round(each.low_bytes),
            "high_bytes_per_sample": round(each.high_bytes),
            "slope": each.how,
        }
    return row


_RISES = " First see to the floor, which rises (see memory-leak): it would fill that room."
_UNKNOWN = (
    "Double the batch size; when training, adapt the learning rate. The factor is the least: it "
    "takes all memory in use to grow with the batch, while weights, gradients and optimizer state "
    "do not. For bytes a sample, record shapes (record_shapes=True), steps (prof.step()) and a "
    "memory snapshot in one job."
)
RULE = Rule(
    id="memory-headroom",
    question="Would a larger batch fit into the device's memory?",
    figures=("memory-headroom",),
    view="memory",
    advice="Raise the batch size by what fits; when training, adapt the learning rate.",
    change="2 settings",
    ask=ask,
)
