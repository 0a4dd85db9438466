"""Kineto traces (`torch.profiler`), and other Chrome traces, as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pandas as pd

from maiprof_nb.loading import _chrome_json, progress
from maiprof_nb.loading._chrome_json import Part
from maiprof_nb.loading._event_args import EventArguments
from maiprof_nb.loading._kineto_tables import Rows, steps_of, tables
from maiprof_nb.loading._kineto_times import EPOCH_FROM_NS
from maiprof_nb.loading._tally import Tally
from maiprof_nb.recording import Note, Recording
from maiprof_nb.tables import SCHEMAS
from maiprof_nb.tables.joining import join
from maiprof_nb.timebase import Clock

NAME = "kineto-json"
sniff = _chrome_json.sniff
_PROFILED = ("operators", "annotations", "launches", "kernels", "python_calls", "memory_events")


def read(data: bytes, source: str) -> Recording:
    """Read one trace.

    Parameters
    ----------
    data : bytes
        The whole file, unwrapped from compression.
    source : str
        Where it came from.

    Returns
    -------
    Recording
        Times in ns from the first complete event (`ph: X`) of the file. Without rank: that
        may be a matter of the file's name (`loading.rank`).

    Notes
    -----
    Events are decoded some megabytes at a time and become columns at once, so that a file is
    never held twice.
    """
    try:
        contents = _chrome_json.outline(data)
        found = _gather(contents.parts(), len(contents.array))
        meta, notes = contents.meta, contents.notes
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        meta, notes, part = _chrome_json.repaired(data, problem)
        found = _gather([part], 0)
    zero_ns = found.zero_ns
    said = {note.code for note in notes}
    missing = [note for note in _missing(found) if note.code not in said]
    return Recording(
        source=source,
        kind="trace",
        format=NAME,
        tables=found.tables(zero_ns),
        clock=_clock(meta, zero_ns),
        notes=(*notes, *found.tally.notes(), *missing),
        events=dict(sorted(found.counts.items())),
        meta=meta,
        args=EventArguments(source, tuple(found.firsts)),
    )


@dataclass
class _Found:
    """What the parts of a file add up to."""

    frames: dict[str, list[pd.DataFrame]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    tally: Tally = field(default_factory=Tally)
    firsts: list[int] = field(default_factory=list)
    starts: list[tuple[int, int]] = field(default_factory=list)

    @property
    def profiler_rows(self) -> int:
        """Rows of the tables that only a profiler of PyTorch fills."""
        return sum(len(f) for name in _PROFILED for f in self.frames.get(name, ()))

    @property
    def zero_ns(self) -> int:
        """The first start of a complete event, or else of any event."""
        return min(self.starts)[1] if self.starts else 0

    def tables(self, zero_ns: int) -> dict[str, pd.DataFrame]:
        """Every table, its times counted from `zero_ns`."""
        made = {}
        for name in list(self.frames):
            table = join(self.frames.pop(name))
            if "ts_ns" in table:
                table["ts_ns"] -= zero_ns
            made[name] = table
        if not made:
            made = {name: SCHEMAS[name].empty() for name in ("operators", "kernels", "annotations")}
        made["steps"] = steps_of(made["annotations"])
        return made


def _gather(parts: Iterable[Part], total_bytes: int) -> _Found:
    found = _Found()
    done_bytes = 0
    for part in parts:
        done_bytes += len(part.json or b"")
        progress.report(done_bytes, total_bytes)
        rows = Rows(part, found.tally)
        found.firsts.append(part.first)
        found.counts.update(rows.counts())
        start = rows.first_start()
        if start is not None:
            found.starts.append(start)
        for name, frame in tables(rows).items():
            if len(frame) or name not in found.frames:
                found.frames.setdefault(name, []).append(frame)
    for frames in found.frames.values():  # an empty first part would only slow the joining
        if len(frames) > 1 and frames[0].empty:
            del frames[0]
    return found


def _missing(found: _Found) -> list[Note]:
    """A note where the file holds nothing that PyTorch's profiler writes."""
    if not sum(found.counts.values()):
        return [Note("no-events", "The file is a trace without a single event.")]
    if found.profiler_rows:
        return []
    text = "The events are a Chrome trace, but none of them is of PyTorch's profiler."
    return [Note("not-from-pytorch", text)]


def _clock(meta: dict[str, Any], zero_ns: int) -> Clock:
    base = meta.get("baseTimeNanoseconds")
    if isinstance(base, int) and zero_ns < EPOCH_FROM_NS:
        return Clock(base + zero_ns, "the trace's own base time (baseTimeNanoseconds)", 0)
    if zero_ns >= EPOCH_FROM_NS:
        return Clock(zero_ns, "epoch time stamps of the trace", 1_000)
    return Clock(None, "the trace states no wall-clock time", None)
