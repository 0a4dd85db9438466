"""Memory logs that are empty, begin late or contradict themselves."""

from __future__ import annotations

from maiprof_nb import units
from maiprof_nb.recording import Recording
from maiprof_nb.trust.rule import Result, failed, not_applicable, passed, rule

_MEMORY = ("memory-curve", "memory-peak")
_HEADROOM = "memory-headroom"
_ROUND = 10_000
_LOGGED = ("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "oom")
_FAULTS = ("frees-unmatched", "allocs-replaced", "state-after-log")
_HISTORY = "Call torch.cuda.memory._record_memory_history() before what is to be seen"


def _count(recording: Recording, *codes: str) -> int:
    return sum(note.count for note in recording.notes if note.code in codes)


def _has_log(recording: Recording) -> bool:
    """True if anything was allocated or freed while the allocator's log was on."""
    return bool(recording.table("allocator_events")["action"].isin(_LOGGED).any())


@rule(
    "memory-empty",
    of="snapshot",
    title="the snapshot is empty",
    remedy=f"{_HISTORY}, in the process that uses the GPU",
    prevents=_MEMORY,
)
def memory_empty(recording: Recording) -> Result:
    """The snapshot holds neither a log nor a segment: it was taken of nothing."""
    if _count(recording, "snapshot-empty"):
        return failed("The snapshot is empty: recording was not on, or nothing used the GPU.")
    return passed()


@rule(
    "memory-log-missing",
    of="snapshot",
    title="the snapshot holds the final state only",
    remedy=_HISTORY,
    prevents=_MEMORY,
    reduces=(_HEADROOM,),
)
def log_missing(recording: Recording) -> Result:
    """The snapshot has segments and blocks, but no log: one moment, and nothing before it."""
    if _count(recording, "snapshot-empty"):
        return not_applicable("the snapshot is empty")
    if _has_log(recording):
        return passed()
    return failed("The allocator's log was not recorded: only the state at the end is known.")


@rule(
    "memory-log-begins-late",
    of="snapshot",
    title="the memory log does not begin at the beginning",
    remedy="Record with a larger max_entries, or begin earlier; stacks and times of older "
    "allocations are not in the file",
    reduces=(*_MEMORY, _HEADROOM),
)
def log_begins_late(recording: Recording) -> Result:
    """Allocations are older than the log.

    It was switched on late, or its ring overflowed and the oldest entries were overwritten.
    Amounts are right from the first entry on, as the final state tells what was there before.
    Whose the older allocations are, and what was before, is unknown; so a peak may be missing.
    """
    events = recording.table("allocator_events")
    if not _has_log(recording):
        return not_applicable("the snapshot holds no log")
    before = _count(recording, "log-begins-late")
    if not before:
        return passed()
    sizes = events["device"].value_counts()
    full = [int(size) for size in sizes if size % _ROUND == 0]
    ring = (
        f" It holds exactly {units.count(full[0])} entries: the ring was full and older ones were "
        "overwritten."
        if full
        else ""
    )
    return failed(
        f"The log begins late: {units.count(before)} allocations are older than it.{ring} What "
        "was before, and whose they are, is unknown.",
        before,
        before / max(len(recording.table("allocations")), 1),
    )


@rule(
    "memory-log-inconsistent",
    of="snapshot",
    title="the memory log contradicts itself",
    remedy="Take the snapshot while no other thread allocates",
    reduces=(*_MEMORY, _HEADROOM),
)
def log_inconsistent(recording: Recording) -> Result:
    """Entries do not fit one another or the final state.

    There are frees of what was not allocated, allocations of what was in use, or changes between
    the end of the log and the final state.
    """
    if not _has_log(recording):
        return not_applicable("the snapshot holds no log")
    odd = _count(recording, *_FAULTS)
    if not odd:
        return passed()
    return failed(
        f"{units.count(odd)} entries of the log do not fit the others or the final state.",
        odd,
        odd / len(recording.table("allocator_events")),
    )
