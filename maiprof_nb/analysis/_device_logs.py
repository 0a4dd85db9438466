"""The replayed logs of every device's memory, replayed once a session, cut to what is selected."""

from __future__ import annotations

from maiprof_nb.analysis._remember import remembered
from maiprof_nb.analysis._windowed_log import cut
from maiprof_nb.analysis.active_memory import HOST, MemoryLog, memory_devices, memory_log
from maiprof_nb.session import Session


def device_logs(session: Session) -> tuple[MemoryLog, ...]:
    """One log a device; a snapshot is preferred to a trace of the same rank.

    Left out are hosts, and the profiler's timelines by category, which have no stacks.
    In a selected window only what happened there, as if the log had been switched on and read
    there; logs without a place on the session's axis stay whole.
    """
    window, ranks = session.selected_window, session.selected_ranks
    shown = []
    for log in whole_logs(session.whole):
        device = log.device
        if ranks is not None and device.rank is not None and device.rank not in ranks:
            continue
        placed = session.placements[device.recording].on_axis
        part = log if window is None or not placed else cut(log, window)
        if part is not None:
            shown.append(part)
    return tuple(shown)


@remembered
def whole_logs(session: Session) -> tuple[MemoryLog, ...]:
    """As `device_logs`, from first to last event whatever is selected."""
    whole = session.whole
    known = [one for one in memory_devices(whole) if one.kind != "timeline"]
    devices = [one for one in known if one.device_type != HOST]
    told = {one.rank for one in devices if one.kind == "snapshot"}
    chosen = [one for one in devices if one.kind == "snapshot" or not ({None, one.rank} & told)]
    return tuple(memory_log(whole, one) for one in chosen)


def snapshot_logs(session: Session) -> tuple[MemoryLog, ...]:
    """Those of `device_logs` of snapshots: with segments, blocks and the allocator's own events."""
    return tuple(log for log in device_logs(session) if log.device.kind == "snapshot")
