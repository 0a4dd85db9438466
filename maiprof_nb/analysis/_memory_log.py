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

from maiprof_nb.analysis._stack_of_operators import operator_stacks
from maiprof_nb.errors import NotAnswerableError, UsageError
from maiprof_nb.recording import Recording
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow

Ints = npt.NDArray[np.int64]

HOST = 0  # torch's DeviceType of the CPU
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
        ``snapshot`` or ``trace``.
    device_type : int
        torch's DeviceType: 0 is the host; snapshots are of devices only (1).
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
        allocation of its size.
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
    chosen = session.selected_ranks
    shown = [d for d in found if chosen is None or d.rank is None or d.rank in chosen]
    return tuple(sorted(shown, key=lambda d: (d.kind != "snapshot", d.device_type == HOST)))


def memory_log(session: Session, device: MemoryDevice | None = None) -> MemoryLog:
    """Replay one device's memory.

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
    recording = session.recordings[device.recording]
    offset_ns = session.placements[device.recording].offset_ns
    replay = _replay_snapshot if device.kind == "snapshot" else _replay_trace
    return replay(recording, device, offset_ns)


def _snapshot_devices(session: Session, number: int, recording: Recording) -> list[MemoryDevice]:
    segments, events = recording.table("segments"), recording.table("allocator_events")
    allocations = recording.table("allocations")
    devices = set(segments["device"]) | set(events["device"]) | set(allocations["device"])
    return [
        MemoryDevice(number, recording.rank, "snapshot", 1, int(device), axis)
        for device in sorted(devices)
        for axis in [_axis(session, number, events["ts_ns"])]
    ]


def _trace_devices(session: Session, number: int, recording: Recording) -> list[MemoryDevice]:
    events = recording.table("memory_events")
    axis = _axis(session, number, events["ts_ns"])
    keys = events[["device_type", "device"]].fillna(-1).drop_duplicates()
    pairs = sorted((int(kind), int(index)) for kind, index in keys.to_numpy() if kind >= 0)
    return [MemoryDevice(number, recording.rank, "trace", *pair, axis) for pair in pairs]


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

    lives = lives.assign(requested_bytes=lives["requested_bytes"].fillna(lives["size_bytes"]))
    made = np.flatnonzero(~lives["before_log"].to_numpy())
    gone = np.flatnonzero(lives["end_ns"].notna().to_numpy())
    size = lives["size_bytes"].to_numpy(np.int64)
    asked = lives["requested_bytes"].to_numpy(np.int64)
    action = events["action"].astype(object)
    freed = "free_completed" if action.eq("free_completed").any() else "free_requested"
    held = events[action.isin(_TAKES + _GIVES).to_numpy()]
    sign = np.where(held["action"].astype(object).isin(_TAKES), 1, -1)
    moved = sign * held["size_bytes"].to_numpy(np.int64)

    begins = lives["ts_ns"].to_numpy(np.int64)[made]
    ends = lives["end_ns"].to_numpy(np.int64, na_value=0)[gone]
    ts_ns = np.concatenate([begins, ends, held["ts_ns"].to_numpy(np.int64)])
    order = np.concatenate(
        [
            _log_order(lives.iloc[made], begins, events[action.eq("alloc").to_numpy()]),
            _log_order(lives.iloc[gone], ends, events[action.eq(freed).to_numpy()]),
            held["event"].to_numpy(np.float64),
        ]
    )
    row = np.lexsort((order, ts_ns))
    state = np.empty(len(row), dtype=np.int64)
    state[row] = np.arange(1, len(row) + 1)

    first_state = np.zeros(len(lives), dtype=np.int64)
    first_state[made] = state[: len(made)]
    end_state = np.full(len(lives), len(row) + 1, dtype=np.int64)
    end_state[gone] = state[len(made) : len(made) + len(gone)]
    none = np.zeros(len(held), dtype=np.int64)
    before = lives["before_log"].to_numpy()
    final_reserved = int(segments["size_bytes"].sum())

    def totals(start: int, *changes: Ints) -> Ints:
        return start + np.concatenate([[0], np.cumsum(np.concatenate(changes)[row])])

    return MemoryLog(
        device=device,
        span=_moved(span, offset_ns),
        ts_ns=np.concatenate([[span.start_ns], ts_ns[row]]) + offset_ns,
        allocated_bytes=totals(int(size[before].sum()), size[made], -size[gone], none),
        requested_bytes=totals(int(asked[before].sum()), asked[made], -asked[gone], none),
        reserved_bytes=totals(
            final_reserved - int(moved.sum()), 0 * size[made], 0 * size[gone], moved
        ),
        allocations=_lives(lives, offset_ns, first_state, end_state),
        stacks=recording.table("stacks"),
    )


def _replay_trace(recording: Recording, device: MemoryDevice, offset_ns: int) -> MemoryLog:
    table = recording.table("memory_events")
    mine = (
        table["size_bytes"].ne(0)
        & table["device_type"].eq(device.device_type)
        & table["device"].eq(device.device)
    )
    events = table[mine.fillna(value=False).to_numpy(bool)]
    events = events.sort_values(["ts_ns", "event"], ignore_index=True)
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
    lives = _paired(events, span)
    lives["stack"], stacks = operator_stacks(
        recording.table("operators"), recording.table("python_calls"), events, lives.pop("made_by")
    )
    # named by the event that tells of it, so that no two devices of a trace share a row id
    told_by = np.where(lives["before_log"], lives["end"], lives["first"]).astype(np.int64) - 1
    lives["allocation"] = events["event"].to_numpy(np.int64)[told_by]
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


def _paired(events: pd.DataFrame, span: TimeWindow) -> pd.DataFrame:
    """Allocations of a trace: each event that takes an address, to the next one there.

    ``made_by`` is the row of the allocating event, -1 for what was freed but never seen made.
    """
    ts_ns = events["ts_ns"].to_numpy(np.int64)
    size = events["size_bytes"].to_numpy(np.int64)
    address = _addresses(events, size)
    by_address = np.argsort(address, kind="stable")
    same = np.diff(address[by_address]) == 0
    follower = np.full(len(events), -1, dtype=np.int64)
    follower[by_address[:-1][same]] = by_address[1:][same]
    first_there = np.ones(len(events), dtype=bool)
    first_there[by_address[1:][same]] = False
    made = np.flatnonzero(size > 0)
    orphan = np.flatnonzero((size < 0) & first_there)

    end_row = np.concatenate([orphan, follower[made]])
    made_by = np.concatenate([np.full(len(orphan), -1, dtype=np.int64), made])
    ended = end_row >= 0
    begins = np.where(made_by >= 0, ts_ns[made_by], span.start_ns) if len(events) else made_by
    ends = pd.array(np.where(ended, ts_ns[end_row], 0) if len(events) else end_row, dtype="Int64")
    ends[~ended] = pd.NA
    sizes = np.concatenate([-size[orphan], size[made]])
    return pd.DataFrame(
        {
            "allocation": np.arange(len(sizes), dtype=np.int64),
            "ts_ns": begins,
            "end_ns": ends,
            "size_bytes": sizes,
            "requested_bytes": pd.array([pd.NA] * len(sizes), dtype="Int64"),
            "before_log": made_by < 0,
            "made_by": made_by,
            "first": np.where(made_by >= 0, made_by + 1, 0),
            "end": np.where(ended, end_row + 1, len(events) + 1),
        }
    )


def _addresses(events: pd.DataFrame, size: Ints) -> Ints:
    """Addresses; where the trace has none, stand-ins by which a free ends the newest of its size.

    That is a guess at which block was freed, never at how many bytes.
    """
    if events["address"].notna().all():
        return events["address"].to_numpy(np.int64)
    amount = np.abs(size)
    change = pd.Series(np.sign(size))
    depth = change.groupby(amount).cumsum().to_numpy(np.int64)
    level = np.where(size > 0, depth, depth + 1)
    classes = pd.DataFrame({"amount": amount, "level": level}).groupby(["amount", "level"])
    return classes.ngroup().to_numpy().astype(np.int64)


def _of(frame: pd.DataFrame, device: MemoryDevice) -> pd.DataFrame:
    return frame[frame["device"].eq(device.device).to_numpy()].reset_index(drop=True)


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


def _log_order(lives: pd.DataFrame, at_ns: Ints, events: pd.DataFrame) -> npt.NDArray[np.float64]:
    """Event numbers of the starts (or ends) of `lives`, by address, time and repetition."""
    wanted = pd.DataFrame({"address": lives["address"].to_numpy(np.int64), "ts_ns": at_ns})
    wanted["turn"] = wanted.groupby(["address", "ts_ns"]).cumcount()
    has = pd.DataFrame(
        {
            "address": events["address"].to_numpy(np.int64, na_value=0),
            "ts_ns": events["ts_ns"].to_numpy(np.int64),
            "event": events["event"].to_numpy(np.float64),
        }
    )
    has["turn"] = has.groupby(["address", "ts_ns"]).cumcount()
    found = wanted.merge(has, how="left", on=["address", "ts_ns", "turn"])["event"]
    # without an event of its own: known from the final state, or address taken over by an alloc
    at_end = np.where(at_ns >= at_ns.max(initial=0), np.inf, -1.0)
    return np.where(found.isna(), at_end, found.to_numpy(np.float64, na_value=np.nan))
