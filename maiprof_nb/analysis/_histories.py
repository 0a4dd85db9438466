"""The allocator's history of each snapshot's device, followed once a session."""

from __future__ import annotations

from maiprof_nb.analysis._allocator_history import AllocatorHistory, allocator_history
from maiprof_nb.analysis._memory_log import MemoryDevice
from maiprof_nb.session import Session

_KEY = "_allocator_histories"


def history_of(session: Session, device: MemoryDevice) -> AllocatorHistory:
    """As `allocator_history`, of the whole session whatever is selected; remembered."""
    whole = session.whole
    known: dict[MemoryDevice, AllocatorHistory] = whole.__dict__.setdefault(_KEY, {})
    if device not in known:
        known[device] = allocator_history(whole, device)
    return known[device]
