"""How much memory a device has, from whatever says so."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from maiprof_nb.analysis._devices import device_facts
from maiprof_nb.analysis.active_memory import HOST, MemoryDevice
from maiprof_nb.analysis.measured import measured
from maiprof_nb.session import Session


@dataclass(frozen=True, slots=True)
class DeviceSize:
    """Memory of one device.

    Parameters
    ----------
    size_bytes : int
        All of it; for a failed request only what the allocator could have had.
    how : str
        Who says so, for people.
    """

    size_bytes: int
    how: str


def device_size(session: Session, device: MemoryDevice) -> DeviceSize | None:
    """Memory of the device, by its trace, else by a sampler, else by a request that failed.

    A snapshot alone says it only where a request failed: the driver's free bytes then, and what
    the allocator had reserved. That leaves out what other processes and the context hold, so it
    is what this job could have had.

    Returns
    -------
    DeviceSize or None
        None for a host, where nothing says so, or where samplers of several devices cannot be
        told apart.
    """
    if device.device_type == HOST:
        return None
    return _traced(session, device) or _sampled(session, device) or _refused(session, device)


def _traced(session: Session, device: MemoryDevice) -> DeviceSize | None:
    for number, recording in enumerate(session.recordings):
        if recording.kind == "trace" and recording.rank in {device.rank, None}:
            size = device_facts(session, number, device.device).memory_bytes
            if size:
                return DeviceSize(int(size), "the device's properties in the trace")
    return None


def _sampled(session: Session, device: MemoryDevice) -> DeviceSize | None:
    table = measured(session.whole, "memory total", "memory used", "memory free")
    found = []
    for name, rows in table.groupby("device", dropna=False):
        of = rows.groupby("quantity")
        total = of["maximum"].max().get("memory total")
        middle = of["median"].max()
        if total is None and {"memory used", "memory free"} <= set(middle.index):
            total = middle["memory used"] + middle["memory free"]
        if total:
            found.append((name, int(total)))
    mine = [total for name, total in found if str(name) == str(device.device)]
    sizes = mine or ([found[0][1]] if len({total for _, total in found}) == 1 else [])
    return DeviceSize(sizes[0], "a sampler's memory.total") if sizes else None


def _refused(session: Session, device: MemoryDevice) -> DeviceSize | None:
    if device.kind != "snapshot":
        return None
    events = session.recordings[device.recording].table("allocator_events")
    events = events[events["device"] == device.device]
    failed = events[events["action"].eq("oom") & events["device_free_bytes"].notna()]
    if failed.empty:
        return None
    reserved = _reserved_after(session, device, events)
    last = failed["event"].iloc[-1]
    free = int(failed["device_free_bytes"].iloc[-1])
    held = int(reserved[np.flatnonzero((events["event"] == last).to_numpy())[0]])
    return DeviceSize(free + held, "free and reserved bytes when a request failed")


def _reserved_after(session: Session, device: MemoryDevice, events: pd.DataFrame) -> np.ndarray:
    """Bytes in segments after each event, back from the final state."""
    segments = session.recordings[device.recording].table("segments")
    final = int(segments.loc[segments["device"] == device.device, "size_bytes"].sum())
    action = events["action"].astype(object)
    sign = action.isin(["segment_alloc", "segment_map"]).astype("int64") - action.isin(
        ["segment_free", "segment_unmap"]
    ).astype("int64")
    change = np.cumsum(sign.to_numpy() * events["size_bytes"].to_numpy(np.int64))
    return final - (change[-1] if len(change) else 0) + change
