"""A recording: what one file holds, as typed tables with a clock and notes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from maiprof_nb.tables import SCHEMAS
from maiprof_nb.timebase import Clock, TimeWindow


@dataclass(frozen=True, slots=True)
class Note:
    """Something that was repaired, dropped, guessed or found missing while reading.

    Parameters
    ----------
    code : str
        Stable identifier, e.g. ``rank-unknown``.
    text : str
        One sentence for people, with an example and its place where there is one.
    count : int
        How many times it happened in this file.
    """

    code: str
    text: str
    count: int = 1


def _no_args(_event: int) -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class Recording:
    """One file, read.

    Parameters
    ----------
    source : str
        Path or URL it was read from.
    kind : str
        ``trace``, ``snapshot``, ``timeline`` (memory by category), ``stacks`` or ``metrics``.
    format : str
        The file format by name, e.g. ``kineto-json``.
    tables : Mapping of str to DataFrame
        Tables by name (see `maiprof_nb.tables.SCHEMAS`); a kind of event the format cannot
        hold has no table here. Times are ns from the recording's own time zero.
    clock : Clock
        What ``ts_ns == 0`` is on the wall clock.
    rank : int or None
        Rank in the job, where the file or its name says so.
    notes : tuple of Note
        What was repaired, dropped or guessed.
    events : Mapping of str to int
        How many events the file holds by phase and category exactly as written there
        (``"X/kernel"``, ``"i/"`` without category); by action for a snapshot.
    meta : Mapping
        What the file says about itself (devices, distributed set-up, options).
    args : callable
        ``args(event)`` gives the untyped details of one event, decoded on demand.
    known_span : TimeWindow, optional
        The span, where it was computed before.
    """

    source: str
    kind: str
    format: str
    tables: Mapping[str, pd.DataFrame]
    clock: Clock
    rank: int | None = None
    notes: tuple[Note, ...] = ()
    events: Mapping[str, int] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)
    args: Callable[[int], dict[str, Any]] = _no_args
    known_span: TimeWindow | None = None

    def table(self, name: str) -> pd.DataFrame:
        """One table by name; empty (with its columns) where this recording has none."""
        found = self.tables.get(name)
        return SCHEMAS[name].empty() if found is None else found

    @property
    def span(self) -> TimeWindow:
        """First start to last end over all timed rows, in ns of the recording's own time."""
        if self.known_span is not None:
            return self.known_span
        starts, ends = [], []
        for frame in self.tables.values():
            if "ts_ns" not in frame or not frame["ts_ns"].notna().any():
                continue
            starts.append(int(frame["ts_ns"].min()))
            ends.append(int(frame["ts_ns"].max()))
            if "dur_ns" in frame:
                ends.append(int((frame["ts_ns"] + frame["dur_ns"].fillna(0)).max()))
            elif "end_ns" in frame and frame["end_ns"].notna().any():
                ends.append(int(frame["end_ns"].max()))
        return TimeWindow(min(starts, default=0), max(ends, default=0))

    @property
    def simulated(self) -> bool:
        """True when the file says that a simulator made it."""
        return bool(self.meta.get("simulated", False))
