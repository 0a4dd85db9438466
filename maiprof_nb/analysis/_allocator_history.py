"""Where every block and segment of one device lay, and from which state of the log to which.

State ``k`` is after the first ``k`` events of the device's log; state 0 is before them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.allocator import AllocatorSettings, segment_lives
from maiprof_nb.analysis._memory_log import HOST, MemoryDevice, log_positions, memory_devices
from maiprof_nb.analysis._remember import remembered
from maiprof_nb.errors import NotAnswerableError, UsageError
from maiprof_nb.session import Session

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class AllocatorHistory:
    """Lives of blocks and of segments of one device.

    Parameters
    ----------
    device : MemoryDevice
        Whose memory it is.
    settings : AllocatorSettings
        As the snapshot states them.
    events : DataFrame
        The device's part of `allocator_events`.
    ts_ns : array of int64
        When each state begins, in ns of the session (never falling).
    blocks : DataFrame
        By address: ``address, size_bytes, requested_bytes, stream, stack`` and the states in
        which it is in use, ``first_state <= k < end_state``; from ``pending_state`` on its free
        is waiting.
    segments : DataFrame
        By address: ``address, size_bytes, stream, pool, pool_id, expandable, first_state,
        end_state``; expandable segments in steps of 2 MiB.
    """

    device: MemoryDevice
    settings: AllocatorSettings
    events: pd.DataFrame
    ts_ns: Ints
    blocks: pd.DataFrame
    segments: pd.DataFrame

    @property
    def last_state(self) -> int:
        """The state after the last event: the snapshot's own."""
        return len(self.events)

    def state_at(self, ts_ns: int) -> int:
        """The state in force at a time, after all events of that very time stamp."""
        return max(int(np.searchsorted(self.ts_ns, ts_ns, side="right")) - 1, 0)


def allocator_history(session: Session, device: MemoryDevice | None = None) -> AllocatorHistory:
    """Follow one device's blocks and segments back from the final state through the log, once.

    Whatever is selected, it is that of the whole session.

    Raises
    ------
    NotAnswerableError
        If the session has no memory snapshot with segments.
    UsageError
        If `device` is not one of the session's snapshots'.
    """
    snapshots = [found for found in memory_devices(session) if found.kind == "snapshot"]
    known = [found for found in snapshots if found.device_type != HOST]
    if not known:
        raise NotAnswerableError(
            "no memory snapshot with segments is in this session",
            remedy="Record one (torch.cuda.memory._record_memory_history, then _dump_snapshot)",
        )
    device = known[0] if device is None else device
    if device not in known:
        raise UsageError(
            f"{device.label} is no snapshot of this session",
            remedy=f"Here: {'; '.join(found.label for found in known)}",
        )
    return _followed(session.whole, device)


@remembered
def _followed(session: Session, device: MemoryDevice) -> AllocatorHistory:
    recording = session.recordings[device.recording]
    offset_ns = session.placements[device.recording].offset_ns
    settings = AllocatorSettings.of_snapshot(recording.meta.get("allocator_settings") or {})
    events, segments, allocations = (
        table[table["device"].eq(device.device).to_numpy()].reset_index(drop=True)
        for table in map(recording.table, ("allocator_events", "segments", "allocations"))
    )
    ends = len(events)
    at_ns = np.maximum.accumulate(events["ts_ns"].to_numpy(np.int64))
    begin = at_ns[:1] if ends else np.zeros(1, np.int64)
    return AllocatorHistory(
        device=device,
        settings=settings,
        events=events,
        ts_ns=np.concatenate([begin, at_ns]) + offset_ns,
        blocks=_blocks(allocations, events),
        segments=segment_lives(events, segments),
    )


def _blocks(allocations: pd.DataFrame, events: pd.DataFrame) -> pd.DataFrame:
    """Lives by address with the states in which they are in use."""
    ends = len(events)
    opened, asked, closed = (
        log_positions(allocations, events, column)
        for column in ("alloc_event", "free_requested_event", "free_event")
    )
    before = allocations["before_log"].to_numpy(bool)
    first = np.where(opened >= 0, opened + 1, np.where(before, 0, ends))
    lost = np.where(allocations["end_ns"].isna(), ends + 1, ends)  # lives on, or ended behind
    end = np.where(closed >= 0, closed + 1, lost)
    columns = allocations[["address", "size_bytes", "requested_bytes", "stream", "stack"]]
    made = columns.assign(
        requested_bytes=columns["requested_bytes"].fillna(columns["size_bytes"]).astype("int64"),
        first_state=first,
        pending_state=np.where(asked >= 0, asked + 1, end),
        end_state=end,
    )
    return made[first < end].sort_values(["address", "first_state"], ignore_index=True)
