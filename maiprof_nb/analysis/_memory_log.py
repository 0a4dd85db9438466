"""One device's memory replayed: every state of its totals and every life of a block.

Snapshots are replayed from the allocator's log back from the final state; traces from the
totals and addresses of the profiler's memory events.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.allocator import doing
from maiprof_nb.analysis._category_lives import category_sums, single_lives
from maiprof_nb.analysis._paired_changes import paired
from maiprof_nb.analysis._remember import remembered
from maiprof_nb.analysis._stack_of_operators import operator_stacks
from maiprof_nb.errors import NotAnswerableError, UsageError
from maiprof_nb.recording import Recording
from maiprof_nb.session import Session
from maiprof_nb.tables import SCHEMAS
from maiprof_nb.timebase import TimeWindow

Ints = npt.NDArray[np.int64]

HOST = 0  # torch's DeviceType of the CPU
UNTOLD = -1
_TAKES = ("segment_alloc", "segment_map")
_GIVES = ("segment_free", "segment_unmap")


@dataclass(frozen=True, slots=True)
class MemoryDevice:
    """One device's memory as one recording saw it.

    Parameters
    ----------
    recording : int
        Position in ``session.recordings``.
    rank : int or None
        Rank of that recording.
    kind : str
        ``snapshot``, ``trace`` or ``timeline`` (the profiler's sums by category).
    device_type : int
        torch's DeviceType: 0 is the host; snapshots are of devices (1) if not made of a profile;
        -1 = the source does not say.
    device : int
        Index of the device.
    axis : str
        ``time`` (on the session's axis), ``own time`` (a clock that could not be tied to
        the session's), ``order`` (event numbers, no times) or ``state`` (one moment only).
    """

    recording: int
    rank: int | None
    kind: str
    device_type: int
    device: int
    axis: str

    @property
    def label(self) -> str:
        """For people, e.g. ``rank 0, GPU 1 (snapshot)``."""
        name = "host memory" if self.device_type == HOST else f"GPU {self.device}"
        name = "one device, by category" if self.device_type == UNTOLD else name
        rank = "" if self.rank is None else f"rank {self.rank}, "
        return f"{rank}{name} ({self.kind})"


@dataclass(frozen=True)
class MemoryLog:
    """Everything one device's log says, oldest first.

    State 0 is what was there before the log; state ``k`` is after its ``k``-th change. Changes
    of the same time stamp keep the log's order, so that no peak is lost to the clock's grain.

    Parameters
    ----------
    device : MemoryDevice
        Whose memory it is.
    span : TimeWindow
        First to last moment of the log, in ns of the session (event numbers for ``order``).
    ts_ns, allocated_bytes : array of int64
        Time and total of each state.
    requested_bytes, reserved_bytes : array of int64 or None
        As `allocated_bytes`; None where the source does not say.
    allocations : DataFrame
        ``allocation, ts_ns, end_ns, size_bytes, requested_bytes, before_log, stack`` and the
        states in which it lives, ``first_state <= k < end_state``. ``end_ns`` is missing for
        what lives at the end.
    stacks : DataFrame
        ``stack, label, frames``.
    baseline_known : bool
        False when what was there before the log had to be taken as the least possible.
    pairing_guessed : bool
        True when the source has no addresses, so that a free was taken to end the newest
        allocation of its size (and category); or it knows sums by category only, and a row of
        `allocations` is one of them for as long as it stayed the same.
    """

    device: MemoryDevice
    span: TimeWindow
    ts_ns: Ints
    allocated_bytes: Ints
    requested_bytes: Ints | None
    reserved_bytes: Ints | None
    allocations: pd.DataFrame
    stacks: pd.DataFrame
    baseline_known: bool = True
    pairing_guessed: bool = False

    def states_at(self, ts_ns: npt.ArrayLike) -> Ints:
        """The state in force at each time (after all changes of that very time stamp)."""
        found = np.searchsorted(self.ts_ns, np.asarray(ts_ns, dtype=np.int64), side="right") - 1
        return np.maximum(found, 0).astype(np.int64)


def memory_devices(session: Session) -> tuple[MemoryDevice, ...]:
    """Every memory the session knows something about: snapshots first, devices before hosts."""
    found: list[MemoryDevice] = []
    for number, recording in enumerate(session.recordings):
        found += _snapshot_devices(session, number, recording)
        found += _trace_devices(session, number, recording)
        found += _timeline_devices(session, number, recording)
    chosen = session.selected_ranks
    shown = [d for d in found if chosen is None or d.rank is None or d.rank in chosen]
    return tuple(sorted(shown, key=lambda d: (d.kind != "snapshot", d.device_type == HOST)))


def memory_log(session: Session, device: MemoryDevice | None = None) -> MemoryLog:
    """Replay one device's memory, once a session.

    Parameters
    ----------
    session : Session
        What was recorded; a selected window does not cut the replay.
    device : MemoryDevice, optional
        One of `memory_devices`; the first of them by default.

    Raises
    ------
    NotAnswerableError
        If nothing in the session says anything about memory.
    UsageError
        If `device` is not one of the session's.
    """
    known = memory_devices(session)
    if not known:
        raise NotAnswerableError(
            "no memory was recorded in this session",
            remedy="Record a snapshot (torch.cuda.memory._record_memory_history, then "
            "_dump_snapshot) or profile with profile_memory=True",
        )
    if device is None:
        device = known[0]
    if device not in known:
        raise UsageError(
            f"{device.label} is not in this session",
            remedy=f"Here: {'; '.join(d.label for d in known)}",
        )
    return _replayed(session.whole, device)


@remembered
def _replayed(session: Session, device: MemoryDevice) -> MemoryLog:
    recording = session.recordings[device.recording]
    offset_ns = session.placements[device.recording].offset_ns
    return _REPLAYS[device.kind](recording, device, offset_ns)


def _snapshot_devices(session: Session, number: int, recording: Recording) -> list[MemoryDevice]:
    segments, events = recording.table("segments"), recording.table("allocator_events")
    allocations = recording.table("allocations")
    devices = {
        device
        for table in (segments, events, allocations)
        for device in table["device"].unique().tolist()
    }
    return [
        MemoryDevice(number, recording.rank, "snapshot", kind, int(device), axis)
        for device in sorted(devices)
        for axis in [_axis(session, number, events["ts_ns"])]
        for kind in [HOST if recording.meta.get("host_device") == device else 1]
    ]


def _trace_devices(session: Session, number: int, recording: Recording) -> list[MemoryDevice]:
    events = recording.table("memory_events")
    axis = _axis(session, number, events["ts_ns"])
    keys = events[["device_type", "device"]].fillna(-1).drop_duplicates()
    pairs = sorted((int(kind), int(index)) for kind, index in keys.to_numpy() if kind >= 0)
    return [MemoryDevice(number, recording.rank, "trace", *pair, axis) for pair in pairs]


def _timeline_devices(session: Session, number: int, recording: Recording) -> list[MemoryDevice]:
    changes = recording.table("category_changes")
    if changes.empty:
        return []
    axis = _axis(session, number, changes["ts_ns"])
    return [MemoryDevice(number, recording.rank, "timeline", UNTOLD, 0, axis)]


def _axis(session: Session, number: int, ts_ns: pd.Series[Any]) -> str:
    if len(ts_ns) == 0 or ts_ns.min() == ts_ns.max():
        return "state"
    if session.recordings[number].clock.ordered_only:
        return "order"
    return "time" if session.placements[number].on_axis else "own time"


def _replay_snapshot(recording: Recording, device: MemoryDevice, offset_ns: int) -> MemoryLog:
    events = _of(recording.table("allocator_events"), device)
    lives = _of(recording.table("allocations"), device)
    segments = _of(recording.table("segments"), device)
    span = _span(recording.table("allocator_events")["ts_ns"], lives["ts_ns"])

    ends = len(events)
    opened, closed = (log_positions(lives, events, side) for side in ("alloc_event", "free_event"))
    before = lives["before_log"].to_numpy(bool)
    later = (opened < 0) & ~before  # made behind the log's end
    lost = (closed < 0) & lives["end_ns"].notna().to_numpy()  # freed there
    opened[later] = closed[lost] = ends
    sign = _taken_or_given(events)

    changed = np.zeros(ends + 1, dtype=bool)
    changed[opened[opened >= 0]] = changed[closed[closed >= 0]] = True
    changed[:ends] |= sign != 0
    state = np.cumsum(changed)
    position = np.flatnonzero(changed)
    at_ns = np.append(np.maximum.accumulate(events["ts_ns"].to_numpy(np.int64)), span.end_ns)
    if ends:
        at_ns[ends] = at_ns[ends - 1]

    def totals(column: str) -> Ints:
        size = lives[column].fillna(lives["size_bytes"]).to_numpy(np.int64)
        change = np.zeros(ends + 1, dtype=np.int64)
        made, gone = (opened >= 0) & ~later, (closed >= 0) & ~lost
        change[opened[made]] += size[made]  # an event makes one block at most, and ends one
        change[closed[gone]] -= size[gone]
        change[ends] = size[later].sum() - size[lost].sum()
        return _summed(int(size[before].sum()), change[position])

    moved = np.append(sign * events["size_bytes"].to_numpy(np.int64), 0)
    held = int(segments["size_bytes"].sum()) - int(moved.sum())
    reserved, allocated = _summed(held, moved[position]), totals("size_bytes")
    reserved_known = moved.any() or (len(segments) > 0 and (reserved >= allocated).all())
    return MemoryLog(
        device=device,
        span=_moved(span, offset_ns),
        ts_ns=np.concatenate([[span.start_ns], at_ns[position]]) + offset_ns,
        allocated_bytes=allocated,
        requested_bytes=totals("requested_bytes"),
        reserved_bytes=reserved if reserved_known else None,  # skip_actions may hide changes
        allocations=_lives(
            lives,
            offset_ns,
            np.where(opened >= 0, state[opened], 0),
            np.where(closed >= 0, state[closed], state[-1] + 1),
        ),
        stacks=recording.table("stacks"),
    )


def log_positions(allocations: pd.DataFrame, events: pd.DataFrame, column: str) -> Ints:
    """Where in one device's log the events of a column of `allocations` are; -1 for none."""
    first = int(events["event"].iloc[0]) if len(events) else 0
    return allocations[column].to_numpy(np.int64, na_value=first - 1) - first


def _taken_or_given(events: pd.DataFrame) -> Ints:
    """1 for an event that takes memory from the device, -1 for one that returns it, else 0."""
    return doing(events, *_TAKES).astype(np.int64) - doing(events, *_GIVES)


def _summed(start: int, change: Ints) -> Ints:
    return start + np.concatenate([[0], np.cumsum(change)])


def _replay_trace(recording: Recording, device: MemoryDevice, offset_ns: int) -> MemoryLog:
    events = log_events(recording.table("memory_events"), device)
    change = events["size_bytes"].to_numpy(np.int64)
    summed = np.cumsum(change)
    totals_known = bool(events["allocated_bytes"].notna().all())
    if totals_known:
        after = events["allocated_bytes"].to_numpy(np.int64)
        start = int(after[0] - change[0])
    else:  # only the changes are known: the least that was there before
        start = max(0, -int(summed.min(initial=0)))
        after = start + summed
    reserved = None
    if events["reserved_bytes"].notna().all() and events["reserved_bytes"].gt(0).any():
        reserved = events["reserved_bytes"].to_numpy(np.int64)
        reserved = np.concatenate([reserved[:1], reserved])
    span = _span(events["ts_ns"])
    lives = paired(events, span)
    made_by = lives.pop("made_by")
    tells = made_by.where(made_by >= 0, lives["end"] - 1)  # the event that tells of it
    # its number, as no two devices of a trace may share a row id
    lives["allocation"] = events["event"].to_numpy(np.int64)[tells.to_numpy(np.int64)]
    lives["stack"], stacks = operator_stacks(
        recording.table("operators"), recording.table("python_calls"), events, made_by
    )
    return MemoryLog(
        device=device,
        span=_moved(span, offset_ns),
        ts_ns=np.concatenate([[span.start_ns], events["ts_ns"].to_numpy(np.int64)]) + offset_ns,
        allocated_bytes=np.concatenate([[start], after]),
        requested_bytes=None,
        reserved_bytes=reserved,
        allocations=_lives(lives, offset_ns, lives.pop("first"), lives.pop("end")),
        stacks=stacks,
        baseline_known=totals_known,
        pairing_guessed=bool(events["address"].isna().any()),
    )


def log_events(table: pd.DataFrame, device: MemoryDevice) -> pd.DataFrame:
    """One device's memory events in order: event ``k`` leads to state ``k + 1`` of its log."""
    mine = (
        table["size_bytes"].ne(0)
        & table["device_type"].eq(device.device_type)
        & table["device"].eq(device.device)
    )
    events = table[mine.fillna(value=False).to_numpy(bool)]
    return events.sort_values(["ts_ns", "event"], ignore_index=True)


def _replay_timeline(recording: Recording, device: MemoryDevice, offset_ns: int) -> MemoryLog:
    changes = recording.table("category_changes")
    before = changes["before_log"].to_numpy(bool)
    size = changes["size_bytes"].to_numpy(np.int64)
    span = _span(changes["ts_ns"])
    single = bool(recording.meta.get("single_events"))
    lives = (single_lives if single else category_sums)(changes, span)
    names = changes["category"].cat.categories.tolist()
    stacks = {"stack": range(len(names)), "label": names, "frames": [""] * len(names)}
    return MemoryLog(
        device=device,
        span=_moved(span, offset_ns),
        ts_ns=np.append(span.start_ns, changes["ts_ns"].to_numpy(np.int64)[~before]) + offset_ns,
        allocated_bytes=_summed(int(size[before].sum()), size[~before]),
        requested_bytes=None,
        reserved_bytes=None,
        allocations=_lives(lives, offset_ns, lives.pop("first"), lives.pop("end")),
        stacks=SCHEMAS["stacks"].frame(stacks),
        pairing_guessed=True,
    )


def _of(frame: pd.DataFrame, device: MemoryDevice) -> pd.DataFrame:
    mine = frame["device"].eq(device.device).to_numpy()
    return frame if mine.all() else frame[mine].reset_index(drop=True)


def _span(*times: pd.Series[Any]) -> TimeWindow:
    """First to last time of the first series that holds any."""
    filled = next((series for series in times if len(series)), None)
    return TimeWindow(0, 0) if filled is None else TimeWindow(int(filled.min()), int(filled.max()))


def _moved(span: TimeWindow, offset_ns: int) -> TimeWindow:
    return TimeWindow(span.start_ns + offset_ns, span.end_ns + offset_ns)


def _lives(lives: pd.DataFrame, offset_ns: int, first: Any, end: Any) -> pd.DataFrame:
    kept = lives[["allocation", "size_bytes", "requested_bytes", "before_log", "stack"]]
    return kept.assign(
        ts_ns=lives["ts_ns"] + offset_ns,
        end_ns=lives["end_ns"] + offset_ns,
        first_state=np.asarray(first, dtype=np.int64),
        end_state=np.asarray(end, dtype=np.int64),
    )


_REPLAYS = {"snapshot": _replay_snapshot, "trace": _replay_trace, "timeline": _replay_timeline}
