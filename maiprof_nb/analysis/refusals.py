"""When the allocator had to refuse a request, as a snapshot's log says it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from maiprof_nb.analysis._memory_log import MemoryDevice
from maiprof_nb.session import Session

_COLUMNS = ["state", "ts_ns", "requested_bytes", "device_free_bytes"]


def refusals(session: Session, device: MemoryDevice) -> pd.DataFrame:
    """Requests for memory that failed on one device, oldest first.

    Parameters
    ----------
    session : Session
        What was recorded; a selected window does not cut it.
    device : MemoryDevice
        One of `maiprof_nb.analysis.active_memory.memory_devices`; only a snapshot tells any.

    Returns
    -------
    DataFrame
        ``state`` (events of the device's log up to and with the refusal), ``ts_ns`` (ns of the
        session; event numbers for a log without times), ``requested_bytes``,
        ``device_free_bytes`` (what the driver had left; missing where it was not recorded).

    Notes
    -----
    Straight from the events, so also of a log that does not fit its segments. What was free in
    pieces then, and who lay between them, is `maiprof_nb.analysis.failed_requests`.
    """
    if device.kind != "snapshot":
        return pd.DataFrame({column: pd.Series(dtype="int64") for column in _COLUMNS})
    events = session.recordings[device.recording].table("allocator_events")
    events = events[events["device"].eq(device.device).to_numpy()]
    at = np.flatnonzero(events["action"].eq("oom").to_numpy(bool))
    offset_ns = session.placements[device.recording].offset_ns
    return pd.DataFrame(
        {
            "state": at + 1,
            "ts_ns": events["ts_ns"].to_numpy(np.int64)[at] + offset_ns,
            "requested_bytes": events["size_bytes"].to_numpy(np.int64)[at],
            "device_free_bytes": events["device_free_bytes"].iloc[at].to_numpy(),
        }
    )
