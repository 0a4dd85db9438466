"""The most of its memory each device used, from whatever was recorded."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from maiprof_nb.analysis._device_logs import device_logs
from maiprof_nb.analysis.device_size import device_size
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
    PyTorch's allocator holds, of a device whose size `device_size` knows. In a selected window
    its peak counts.

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
    """What the allocator reserved, else allocated, of devices whose size is known."""
    try:
        logs = device_logs(session)
    except NotAnswerableError:
        return []
    found: dict[tuple[int | None, int], MemoryUse] = {}
    for log in logs:
        one, size = log.device, device_size(session, log.device)
        held = log.allocated_bytes if log.reserved_bytes is None else log.reserved_bytes
        peak = int(held.max())
        if size is not None and 0 < peak <= size.size_bytes:
            table = "allocator_events" if one.kind == "snapshot" else "memory_events"
            verb = "allocated" if log.reserved_bytes is None else "reserved"
            how = f"{verb} by PyTorch's allocator"
            use = MemoryUse(table, one.recording, str(one.device), peak, size.size_bytes, how)
            found.setdefault((one.rank, one.device), use)
    return list(found.values())
