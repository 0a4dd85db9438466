"""Requests for memory that failed: what was free, what would have fit, who was in the way."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from maiprof_nb.allocator import (
    SMALL_REQUEST_LIMIT,
    AllocatorSettings,
    OutOfMemoryError,
    largest_request,
    rounded,
)
from maiprof_nb.analysis._allocator_history import AllocatorHistory, allocator_history
from maiprof_nb.analysis._allocator_replay import KEPT, PACKED, replay, until
from maiprof_nb.analysis._memory_log import MemoryDevice
from maiprof_nb.analysis.allocator_state import state_of
from maiprof_nb.analysis.fragmentation import holes_in
from maiprof_nb.analysis.memory_replay import agreement_of
from maiprof_nb.session import Session

_MOST_REQUESTS = 200_000  # replayed a request at a time: some 10 us each


@dataclass(frozen=True)
class FailedRequest:
    """One request that the allocator could not serve, and its memory at that moment.

    Parameters
    ----------
    event : int
        Row of `allocator_events`.
    ts_ns : int
        When, in ns of the session.
    stack : int or None
        Who asked.
    requested_bytes : int
        What was asked for.
    device_free_bytes : int or None
        What the driver still had.
    reserved_bytes, allocated_bytes : int
        In segments; of it in use or waiting to be freed.
    free_bytes, largest_hole_bytes : int
        Free within segments; the largest piece that this request could have taken (of its
        stream and size class; a request up to 1 MiB takes from other segments than a larger).
    cached_bytes : int
        In wholly free segments. The allocator returns them before it gives up, so this is
        rarely more than 0.
    fits_after_release_bytes : int
        The largest request that would have been served once those segments were returned.
    fits_after_defragmentation_bytes : int
        Served if every live block could be moved to one end: all that is free, driver included.
    holders : DataFrame
        Whose blocks lie beside the holes, as `maiprof_nb.analysis.fragmentation.holes` says.
    """

    event: int
    ts_ns: int
    stack: int | None
    requested_bytes: int
    device_free_bytes: int | None
    reserved_bytes: int
    allocated_bytes: int
    free_bytes: int
    largest_hole_bytes: int
    cached_bytes: int
    fits_after_release_bytes: int
    fits_after_defragmentation_bytes: int
    holders: pd.DataFrame

    @property
    def in_pieces(self) -> bool:
        """True if enough was free, but not in one piece."""
        return self.requested_bytes <= self.fits_after_defragmentation_bytes

    @property
    def device_bytes(self) -> int | None:
        """What the allocator could have had of the device in all."""
        free = self.device_free_bytes
        return None if free is None else free + self.reserved_bytes


def failed_requests(session: Session, device: MemoryDevice) -> list[FailedRequest]:
    """Every failed request of one snapshot's device in the selected window, in order.

    Raises
    ------
    NotAnswerableError
        If the log does not fit the segments.

    Notes
    -----
    The log counts a request that the allocator retried after it returned its cache once, as it
    writes the entry only when it gives up.
    """
    history = allocator_history(session, device)
    window = session.selected_window
    at = np.flatnonzero(history.events["action"].eq("oom").to_numpy(bool))
    if window is not None and session.placements[device.recording].on_axis:
        when, last = history.ts_ns[at + 1], history.ts_ns[-1]
        before = (when < window.end_ns) | (window.end_ns >= last)
        at = at[(when >= window.start_ns) & before]
    stacks = session.recordings[device.recording].table("stacks")
    return [_failed(history, int(position), stacks) for position in at]


def would_be_served(
    session: Session, device: MemoryDevice, failed: FailedRequest, *, expandable: bool
) -> bool | None:
    """Whether the same requests, and then the failed one, fit on the device with another setting.

    Returns
    -------
    bool or None
        None where the model of the allocator does not repeat the log, the log does not say what
        the device had free, the answer depends on what lay there before the log, or the log is
        too long to replay here.
    """
    history = allocator_history(session, device)
    limit = failed.device_bytes
    if limit is None or len(history.blocks) > _MOST_REQUESTS or not agreement_of(history).exact:
        return None
    settings = replace(history.settings, expandable=expandable)
    asked = _with(history, failed)
    answers = {_fits(asked, settings, start, limit) for start in (KEPT, PACKED)}
    return answers.pop() if len(answers) == 1 else None


def _failed(history: AllocatorHistory, position: int, stacks: pd.DataFrame) -> FailedRequest:
    row = history.events.iloc[position]
    state = state_of(history, position)
    size = state["size_bytes"].to_numpy(np.int64)
    free = state["state"].eq("inactive").to_numpy(bool)
    whole = free & (size == state["segment_bytes"].to_numpy(np.int64))
    asked = int(row["size_bytes"])
    small = rounded(asked, history.settings) <= SMALL_REQUEST_LIMIT
    usable = free & state["pool"].eq("small" if small else "large").to_numpy(bool)
    usable &= state["stream"].eq(row["stream"]).fillna(value=True).to_numpy(bool)
    driver = None if pd.isna(row["device_free_bytes"]) else int(row["device_free_bytes"])
    hole = int(size[usable].max(initial=0))
    free_bytes, cached = int(size[free].sum()), int(size[whole].sum())
    reserved = int(size.sum())
    return FailedRequest(
        event=int(row["event"]),
        ts_ns=int(history.ts_ns[position + 1]),
        stack=None if pd.isna(row["stack"]) else int(row["stack"]),
        requested_bytes=asked,
        device_free_bytes=driver,
        reserved_bytes=reserved,
        allocated_bytes=reserved - free_bytes,
        free_bytes=free_bytes,
        largest_hole_bytes=hole,
        cached_bytes=cached,
        fits_after_release_bytes=max(hole, largest_request((driver or 0) + cached)),
        fits_after_defragmentation_bytes=free_bytes + (driver or 0),
        holders=holes_in(state, stacks),
    )


def _with(history: AllocatorHistory, failed: FailedRequest) -> AllocatorHistory:
    """The log up to the failure, with the failed request as one more that stays."""
    position = int(np.flatnonzero((history.events["event"] == failed.event).to_numpy())[0])
    log = until(history, position + 1)
    stream = log.events["stream"].iloc[-1]
    one = {
        "address": int(log.segments["address"].iloc[0]) if len(log.segments) else 0,
        "size_bytes": rounded(failed.requested_bytes, history.settings),
        "requested_bytes": failed.requested_bytes,
        "stream": 0 if pd.isna(stream) else int(stream),
        "stack": pd.NA,
        "first_state": position + 1,
        "pending_state": position + 2,
        "end_state": position + 2,
    }
    more = pd.DataFrame([one]).astype(log.blocks.dtypes.to_dict())
    return replace(log, blocks=pd.concat([log.blocks, more], ignore_index=True))


def _fits(
    history: AllocatorHistory, settings: AllocatorSettings, start: str, limit_bytes: int
) -> bool:
    try:
        replay(history, settings, start=start, retries=False, limit_bytes=limit_bytes)
    except OutOfMemoryError:
        return False
    return True
