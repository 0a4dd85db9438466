"""Which moments of a memory log are moments of the session."""

from __future__ import annotations

from maiprof_nb.analysis.active_memory import MemoryDevice
from maiprof_nb.analysis.allocator_state import AllocatorHistory
from maiprof_nb.session import Session


def shares_moments(session: Session, device: MemoryDevice) -> bool:
    """True where the log lies on the session's axis, or is all that the session holds."""
    return device.axis == "time" or len(session.recordings) == 1


def moment_of(history: AllocatorHistory, state: int) -> int:
    """A state's moment as the link tells it."""
    return int(history.ts_ns[state])
