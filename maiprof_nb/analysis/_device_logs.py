"""The replayed logs of every device's memory, replayed once a session."""

from __future__ import annotations

from maiprof_nb.analysis._remember import remembered
from maiprof_nb.analysis.active_memory import HOST, MemoryLog, memory_devices, memory_log
from maiprof_nb.session import Session


@remembered
def device_logs(session: Session) -> tuple[MemoryLog, ...]:
    """One log a device; a snapshot is preferred to a trace of the same rank.

    Left out are hosts, and the profiler's timelines by category, which have no stacks.
    """
    known = [one for one in memory_devices(session) if one.kind != "timeline"]
    devices = [one for one in known if one.device_type != HOST]
    told = {one.rank for one in devices if one.kind == "snapshot"}
    chosen = [one for one in devices if one.kind == "snapshot" or not ({None, one.rank} & told)]
    return tuple(memory_log(session, one) for one in chosen)


def snapshot_logs(session: Session) -> tuple[MemoryLog, ...]:
    """Those of snapshots: with segments, blocks and the allocator's own events."""
    return tuple(log for log in device_logs(session) if log.device.kind == "snapshot")
