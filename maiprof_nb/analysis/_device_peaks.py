"""The peak of each device's log, found once a session."""

from __future__ import annotations

from maiprof_nb.analysis._remember import remembered
from maiprof_nb.analysis.active_memory import MemoryDevice, MemoryLog
from maiprof_nb.analysis.memory_peak import MemoryPeak, peak_of
from maiprof_nb.session import Session


def device_peak(session: Session, log: MemoryLog) -> MemoryPeak:
    """As `peak_of`, of one of the session's `device_logs`."""
    known = _known(session)
    if log.device not in known:
        known[log.device] = peak_of(session, log)
    return known[log.device]


@remembered
def _known(session: Session) -> dict[MemoryDevice, MemoryPeak]:  # noqa: ARG001 - one a session
    return {}
