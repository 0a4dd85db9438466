"""The most of its memory each device used, from whatever was recorded."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from maiprof_nb.analysis._devices import device_facts
from maiprof_nb.analysis.active_memory import HOST, MemoryDevice, memory_curve, memory_devices
from maiprof_nb.analysis.measured import measured
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.session import Session


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Peak and size of one device's memory.

    Parameters
    ----------
    table : str
        Where the peak was found.
    recording : int
        And in which recording.
    device : str or None
        As the source names it.
    peak_bytes, total_bytes : int
        The most in use, and what there is.
    how : str
        What counts as in use, for people.
    """

    table: str
    recording: int
    device: str | None
    peak_bytes: int
    total_bytes: int
    how: str

    @property
    def share(self) -> float:
        """Part of the device in use at the peak, 0 to 1."""
        return self.peak_bytes / self.total_bytes


def memory_use(session: Session) -> list[MemoryUse]:
    """Peaks by the best source there is.

    Samplers see everything on the device; a snapshot or a trace's memory events only what
    PyTorch's allocator holds, for which the device's size must stand in the trace.

    Returns
    -------
    list of MemoryUse
        One a device; empty where peak or size are not known.
    """
    return _sampled(session) or _allocated(session)


def _sampled(session: Session) -> list[MemoryUse]:
    table = measured(session, "memory used", "memory total", "memory free")
    found = []
    for (recording, device), rows in table.groupby(["recording", "device"], dropna=False):
        of = rows.groupby("quantity")
        most = of["maximum"].max()
        used, total = most.get("memory used"), most.get("memory total")
        if used is not None and total is None and "memory free" in most:
            total = float(of["median"].max()["memory used"] + of["median"].max()["memory free"])
        if used is not None and total:
            name = None if pd.isna(device) else str(device)
            found.append(
                MemoryUse("counters", int(recording), name, int(used), int(total), "sampled")
            )
    return found


def _allocated(session: Session) -> list[MemoryUse]:
    """What the allocator reserved of devices whose size stands in a trace."""
    try:
        devices = [one for one in memory_devices(session) if one.device_type != HOST]
    except NotAnswerableError:
        return []
    found: dict[tuple[int | None, int], MemoryUse] = {}
    for one in devices:  # snapshots first
        peak = memory_curve(session, device=one)["reserved_bytes"].max()
        total = device_bytes(session, one)
        if total and pd.notna(peak) and 0 < int(peak) <= total:
            table = "allocator_events" if one.kind == "snapshot" else "memory_events"
            how = "reserved by PyTorch's allocator"
            use = MemoryUse(table, one.recording, str(one.device), int(peak), total, how)
            found.setdefault((one.rank, one.device), use)
    return list(found.values())


def device_bytes(session: Session, device: MemoryDevice) -> int | None:
    """Size of a device's memory; None where nothing states it.

    By the trace of its rank, else by samplers where all devices they saw are of one size.
    """
    sizes = (
        device_facts(session, number, device.device).memory_bytes
        for number, recording in enumerate(session.recordings)
        if recording.kind == "trace" and recording.rank in {device.rank, None}
    )
    stated = next((size for size in sizes if size), None)
    if stated is not None or device.device_type == HOST:
        return stated
    sampled = {one.total_bytes for one in _sampled(session)}
    return sampled.pop() if len(sampled) == 1 else None
