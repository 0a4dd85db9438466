"""Samples collected one by one -> the table `counters`, for logs whose rows hold many series."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.loading import _metrics
from maiprof_nb.loading._metric_times import Stamps, ordered
from maiprof_nb.recording import Note, Recording
from maiprof_nb.tables import SCHEMAS

_MAX_NAME = 200  # characters of a device's or counter's name; more is damage


class Quantity(NamedTuple):
    """What is measured: a counter with its unit, of one device or (None) of the host."""

    counter: str
    unit: str | None = None
    device: str | None = None


CPU_UTILIZATION = Quantity(_metrics.CPU_UTILIZATION, "%")


@dataclass
class LongSamples:
    """Samples of any quantity at any row of a log."""

    events: list[int] = field(default_factory=list)
    kinds: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    quantities: dict[Quantity, int] = field(default_factory=dict)
    lacking: Counter[str] = field(default_factory=Counter)

    def add(self, event: int, quantity: Quantity, value: float) -> None:
        """Take one sample of row `event`; one that is no finite number counts as missing."""
        if not math.isfinite(value):
            self.lacking[quantity.counter] += 1
            return
        self.events.append(event)
        self.kinds.append(self.quantities.setdefault(quantity, len(self.quantities)))
        self.values.append(value)

    def add_column(
        self, events: npt.NDArray[np.int64], quantity: Quantity, values: _metrics.Floats
    ) -> None:
        """Take samples of one quantity at rows `events`, as `add` does one by one."""
        known = np.isfinite(values)
        if not known.all():
            self.lacking[quantity.counter] += int((~known).sum())
        if known.any():
            kind = self.quantities.setdefault(quantity, len(self.quantities))
            self.events += events[known].tolist()
            self.kinds += [kind] * int(known.sum())
            self.values += values[known].tolist()

    def add_cpu(self, event: int, percent: float) -> None:
        """Take the utilisation of all cores together, worked out from what the row says."""
        if math.isfinite(percent):
            self.add(event, CPU_UTILIZATION, percent)

    def recording(
        self,
        source: str,
        name: str,
        stamps: Stamps,
        *,
        notes: Sequence[Note] = (),
        meta: dict[str, Any] | None = None,
    ) -> Recording:
        """The recording; `stamps` has one time a row, rows counted as in `events`."""
        found = [*notes, *_metrics.missing_note(self.lacking)]
        if len(stamps.ns) and not stamps.ns.notna().any():
            text = "No row has a time that can be read; the rows are in order only."
            found.append(Note("time-unreadable", text, len(stamps.ns)))
            stamps = ordered(range(len(stamps.ns)))
        times, clock = stamps.placed()
        event = np.array(self.events, dtype=np.int64)
        ts_ns = times.array[event]
        kind = np.array(self.kinds, dtype=np.int64)
        made = {
            "event": event,
            "ts_ns": ts_ns,
            **{part: self._texts(part, kind) for part in ("device", "counter", "unit")},
            "value": np.array(self.values, dtype=np.float64),
        }
        timed = ~np.asarray(ts_ns.isna(), dtype=np.bool_)
        order = np.argsort(event, kind="stable")
        order = order[timed[order]]
        table = SCHEMAS["counters"].frame({name: part[order] for name, part in made.items()})
        untimed = int(times.isna().sum())
        if untimed:
            text = f"{untimed} rows have no time that can be read and were left out."
            found.append(Note("time-unreadable", text, untimed))
        derived = int((table["counter"] == _metrics.CPU_UTILIZATION).sum())
        return _metrics.of_table(
            source, name, table, clock, notes=found, meta=meta, derived=derived
        )

    def _texts(self, part: str, kind: np.ndarray[Any, Any]) -> pd.Categorical:
        texts = [text and _shown(text) for text in map(attrgetter(part), self.quantities)]
        return pd.Series(texts, dtype="str").astype("category").array[kind]


def _shown(text: str) -> str:
    """Shortened, and without halves of surrogate pairs, which no table can hold."""
    return text[:_MAX_NAME].encode("utf-8", "replace").decode()
