"""Kineto traces (`torch.profiler`), and other Chrome traces, as JSON."""

from __future__ import annotations

from typing import Any

import numpy as np

from maiprof_nb.loading import _chrome_json
from maiprof_nb.loading._chrome_json import Contents
from maiprof_nb.loading._kineto_rank import rank_of
from maiprof_nb.loading._kineto_tables import Rows, arguments, tables
from maiprof_nb.loading._kineto_times import EPOCH_FROM_NS, Bools, Ints, nanoseconds
from maiprof_nb.recording import Note, Recording
from maiprof_nb.timebase import Clock

NAME = "kineto-json"
sniff = _chrome_json.sniff


def read(data: bytes, source: str) -> Recording:
    """Read one trace.

    Parameters
    ----------
    data : bytes
        The whole file, unwrapped from compression.
    source : str
        Where it came from; its name may state the rank.

    Returns
    -------
    Recording
        Times in ns from the first complete event (`ph: X`) of the file.
    """
    contents = _chrome_json.parse(data)
    events = contents.events
    ts_ns, has_ts = nanoseconds([event.ts for event in events], contents.exact_times)
    dur_ns, has_dur = nanoseconds([event.dur for event in events])
    complete = np.array([event.ph == "X" for event in events], dtype=bool)
    notes = [*contents.notes, *_duration_notes(complete, dur_ns, has_dur)]
    zero_ns = _first(ts_ns, complete & has_ts, has_ts)
    rows = Rows(
        events, ts_ns - zero_ns, np.where(has_dur, np.maximum(dur_ns, 0), 0), has_ts, has_dur
    )
    rank, rank_notes = rank_of(contents.meta, source)
    return Recording(
        source=source,
        kind="trace",
        format=NAME,
        tables=tables(rows),
        clock=_clock(contents, zero_ns),
        rank=rank,
        notes=(*notes, *_time_notes(complete, has_ts), *rank_notes),
        events=rows.counts(),
        meta=contents.meta,
        args=_Arguments(contents),
    )


class _Arguments:
    """Details of one event, decoded when asked for."""

    def __init__(self, contents: Contents) -> None:
        self._events = contents.events

    def __call__(self, event: int) -> dict[str, Any]:
        return arguments(self._events[event])


def _first(ts_ns: Ints, complete: Bools, known: Bools) -> int:
    for chosen in (complete, known):
        if chosen.any():
            return int(ts_ns[chosen].min())
    return 0


def _clock(contents: Contents, zero_ns: int) -> Clock:
    base = contents.meta.get("baseTimeNanoseconds")
    if isinstance(base, int) and zero_ns < EPOCH_FROM_NS:
        return Clock(base + zero_ns, "the trace's own base time (baseTimeNanoseconds)", 0)
    if zero_ns >= EPOCH_FROM_NS:
        return Clock(zero_ns, "epoch time stamps of the trace", 1_000)
    return Clock(None, "the trace states no wall-clock time", None)


def _duration_notes(complete: Bools, dur_ns: Ints, has_dur: Bools) -> list[Note]:
    negative = complete & has_dur & (dur_ns < 0)
    missing = complete & ~has_dur
    notes = []
    if negative.any():
        text = (
            "Events have a negative duration (unfinished when the trace was written) and "
            f"count as 0, first event {np.flatnonzero(negative)[0]}."
        )
        notes.append(Note("negative-duration", text, int(negative.sum())))
    if missing.any():
        first = np.flatnonzero(missing)[0]
        text = f"Events have no readable duration and count as 0, first event {first}."
        notes.append(Note("duration-missing", text, int(missing.sum())))
    return notes


def _time_notes(complete: Bools, has_ts: Bools) -> list[Note]:
    lost = complete & ~has_ts
    if not lost.any():
        return []
    first = np.flatnonzero(lost)[0]
    text = f"Events have no readable start time and are on no timeline, first event {first}."
    return [Note("time-missing", text, int(lost.sum()))]
