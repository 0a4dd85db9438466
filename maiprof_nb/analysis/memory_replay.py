"""What another setting of the allocator would have reserved for the same requests."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from maiprof_nb.allocator import MIB, AllocatorSettings, OutOfMemoryError
from maiprof_nb.analysis._allocator_history import AllocatorHistory, allocator_history
from maiprof_nb.analysis._allocator_replay import (
    KEPT,
    PACKED,
    Replay,
    device_limit,
    replay,
    requested_in_states,
    reserved_in_states,
)
from maiprof_nb.analysis._memory_log import MemoryDevice
from maiprof_nb.errors import NotAnswerableError, UsageError
from maiprof_nb.session import Session

_LEAST_SPLIT = 20 * MIB  # PyTorch refuses less


@dataclass(frozen=True)
class Agreement:
    """How well the allocator's model, with the log's own settings, repeats the real log.

    Parameters
    ----------
    requests, same_place : int
        Requests in the log, and how many of them the model gave the real address.
    segments, same_segments : int
        Segments that the log took from the device, and how many of them, in order, the model
        took with the same size.
    returned, model_returned : int
        Segments returned to the device, by the log and by the model.
    peak_reserved_bytes, model_peak_reserved_bytes : int
        The most that was reserved.
    reserved_same : bool
        The model has as much reserved as the log after every request and at the end.
    """

    requests: int
    same_place: int
    segments: int
    same_segments: int
    returned: int
    model_returned: int
    peak_reserved_bytes: int
    model_peak_reserved_bytes: int
    reserved_same: bool

    @property
    def exact(self) -> bool:
        """The model repeats the log request for request."""
        return self.reserved_same and self.same_place == self.requests


@dataclass(frozen=True)
class WhatIf:
    """Reserved memory with another setting, for the same requests in the same order.

    What the log does not say makes the range: how blocks from before the log would lie (as they
    lay with what was cached then, or packed anew in the order of their addresses).

    Parameters
    ----------
    settings : AllocatorSettings
        The other setting.
    peak_reserved_bytes : int
        The most that was reserved, as recorded.
    least_peak_bytes, most_peak_bytes : int
        The range of what it would have been.
    peak_requested_bytes : int
        The most that was asked for at once; no setting can do with less.
    device_bytes : int or None
        The most the device can give, where the log shows it by a return of cached memory that
        served a request. The replay keeps to it, and to the real peak, as the allocator would.
    out_of_memory : str
        ``no``; ``maybe``: some of these replays fail; ``yes``: all fail, also with
        `device_bytes`, and the range is that of a device without limit.
    segments, least_segments, most_segments : int
        Times memory was taken from the device, as recorded and as it would have been.
    """

    settings: AllocatorSettings
    peak_reserved_bytes: int
    least_peak_bytes: int
    most_peak_bytes: int
    peak_requested_bytes: int
    device_bytes: int | None
    out_of_memory: str
    segments: int
    least_segments: int
    most_segments: int

    @property
    def saved_bytes(self) -> tuple[int, int]:
        """Least and most by which the peak would be lower; negative = higher."""
        real = self.peak_reserved_bytes
        return real - self.most_peak_bytes, real - self.least_peak_bytes


def model_agreement(session: Session, device: MemoryDevice | None = None) -> Agreement:
    """Feed a snapshot's requests to the allocator's model and compare.

    The model begins with the segments and blocks that the log implies were there before it. It
    is told the addresses of new segments, which the driver chooses, and where cached memory
    was returned; all else it decides itself.

    Raises
    ------
    NotAnswerableError
        If there is no snapshot, or its log does not fit its segments.
    UsageError
        If `device` is not one of the session's snapshots'.
    """
    return agreement_of(allocator_history(session, device))


def what_if(
    session: Session,
    device: MemoryDevice | None = None,
    *,
    expandable: bool | None = None,
    max_split_size: int | None = None,
) -> WhatIf:
    """Replay a snapshot's requests with another setting of the allocator.

    Parameters
    ----------
    session : Session
        What was recorded.
    device : MemoryDevice, optional
        One of `memory_devices` that is a snapshot's; the first of them by default.
    expandable : bool, optional
        ``expandable_segments``; as recorded by default.
    max_split_size : int, optional
        ``max_split_size_mb``, but in bytes; as recorded by default.

    Raises
    ------
    NotAnswerableError
        If there is no snapshot, its log holds no requests, or the model of the allocator does
        not repeat the real log exactly with the setting that was in force.
    UsageError
        If no setting is given, or one that PyTorch would refuse.

    Notes
    -----
    The replay changes where blocks lie, not what is asked for, nor the order of streams; times
    saved or lost by it are not estimated. Only the log's span counts: a peak before it is not
    seen.
    """
    if expandable is None and max_split_size is None:
        raise UsageError("no other setting is given", remedy="Give expandable or max_split_size")
    if max_split_size is not None and max_split_size <= _LEAST_SPLIT:
        raise UsageError(
            f"PyTorch takes no max_split_size of {max_split_size} bytes",
            remedy="It must be more than 20 MiB",
        )
    history = allocator_history(session, device)
    agreement = agreement_of(history)
    if not agreement.requests:
        raise NotAnswerableError(
            "the snapshot's log holds no requests to replay",
            remedy="Record with torch.cuda.memory._record_memory_history before the steps",
        )
    if not agreement.exact:
        raise NotAnswerableError(
            "the model of the allocator does not repeat this log "
            f"({agreement.same_place} of {agreement.requests} requests at the real address), "
            "so it cannot say what another setting would do",
            remedy="Record without garbage_collection_threshold and with all actions",
        )
    settings = history.settings
    if expandable is not None:
        settings = replace(settings, expandable=expandable)
    if max_split_size is not None:
        settings = replace(settings, max_split_bytes=max_split_size)
    limit = device_limit(history)
    limits = [None] if limit is None else [agreement.peak_reserved_bytes, limit]
    tried = [_within(history, settings, start, each) for start in (KEPT, PACKED) for each in limits]
    runs = [run for run in tried if run is not None]
    out_of_memory = "no" if len(runs) == len(tried) else "maybe" if runs else "yes"
    if not runs:
        runs = [replay(history, settings, start=s, retries=False) for s in (KEPT, PACKED)]
    peaks = [run.peak_reserved_bytes for run in runs]
    taken = [len(run.taken) for run in runs]
    return WhatIf(
        settings=settings,
        peak_reserved_bytes=agreement.peak_reserved_bytes,
        least_peak_bytes=min(peaks),
        most_peak_bytes=max(peaks),
        peak_requested_bytes=int(requested_in_states(history).max()),
        device_bytes=limit,
        out_of_memory=out_of_memory,
        segments=agreement.segments,
        least_segments=min(taken),
        most_segments=max(taken),
    )


def _within(
    history: AllocatorHistory, settings: AllocatorSettings, start: str, limit: int | None
) -> Replay | None:
    try:
        return replay(history, settings, start=start, retries=False, limit_bytes=limit)
    except OutOfMemoryError:
        return None


def agreement_of(history: AllocatorHistory) -> Agreement:
    """As `model_agreement`, of a history already followed."""
    made = replay(history)
    action = history.events["action"].astype(object)
    size = history.events["size_bytes"].to_numpy(np.int64)
    taken = size[action.isin(["segment_alloc", "segment_map"]).to_numpy(bool)].tolist()
    given = int(action.isin(["segment_free", "segment_unmap"]).sum())
    real = reserved_in_states(history)
    settled = np.append(np.flatnonzero(action.eq("alloc").to_numpy(bool)) + 1, history.last_state)
    return Agreement(
        requests=made.allocs,
        same_place=made.same_place,
        segments=len(taken),
        same_segments=sum(a == b for a, b in zip(taken, made.taken, strict=False)),
        returned=given,
        model_returned=len(made.given),
        peak_reserved_bytes=int(real.max()),
        model_peak_reserved_bytes=made.peak_reserved_bytes,
        reserved_same=bool((real[settled] == made.reserved_bytes[settled]).all()),
    )
