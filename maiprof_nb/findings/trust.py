"""What speaks against believing a figure."""

from __future__ import annotations

from maiprof_nb import units
from maiprof_nb.session import Session

_LOST_SHARE = 0.01
_DISTORTING = ("with_stack", "record_shapes", "profile_memory")


def reservations(session: Session) -> tuple[str, ...]:
    """Reasons why figures of this session may be off, as sentences."""
    found = [
        *_unmatched(session),
        *_overhead(session),
    ]
    if session.simulated:
        found.append("This recording was made by a simulator; no GPU was involved.")
    return tuple(found)


def _unmatched(session: Session) -> list[str]:
    """Kernels whose launch was not recorded: the window's edge cut them, or events were lost."""
    work, launches = session.table("kernels"), session.table("launches")
    if work.empty or launches.empty:
        return []
    keys = ["recording", "correlation"]
    known = launches[launches["correlation"].notna()][keys].drop_duplicates()
    tied = work[work["correlation"].notna()].merge(known, on=keys)
    lost = len(work) - len(tied)
    if lost <= _LOST_SHARE * len(work):
        return []
    return [
        f"{units.count(lost)} of {units.count(len(work))} pieces of device work have no launch in "
        "the trace (cut at the window's edge, or lost); phases and operators miss them."
    ]


def _overhead(session: Session) -> list[str]:
    on = sorted(
        {
            option
            for recording in session.recordings
            for option in _DISTORTING
            if recording.meta.get(option)
        }
    )
    if not on:
        return []
    return [
        f"Recorded with {', '.join(on)}: this slows the host, many short operators more than few "
        "long ones. Compare with other profiled runs only."
    ]
