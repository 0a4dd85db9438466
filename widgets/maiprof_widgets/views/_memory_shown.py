"""One device's memory as the memory view shows it: axis, colours, what is lit, in pictures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._remember import remembered
from maiprof_nb.analysis.active_memory import (
    MemoryDevice,
    MemoryLog,
    MemoryPicture,
    memory_log,
    picture_of,
)
from maiprof_nb.analysis.allocation_makers import makers_of
from maiprof_nb.analysis.allocations_during import allocations_during, allocations_in
from maiprof_nb.analysis.memory_by_event import by_event
from maiprof_nb.analysis.memory_categories import categories_of
from maiprof_nb.analysis.memory_search import allocations_like, counted
from maiprof_nb.session import Session
from maiprof_nb.timebase import NS_PER_US, TimeWindow
from maiprof_widgets.figures.theme import theme
from maiprof_widgets.link import Selection
from maiprof_widgets.views import _memory_words as words
from maiprof_widgets.views._memory_colours import Colours, MergedColours, colours_of, legend
from maiprof_widgets.views._refused import refused

Flags = npt.NDArray[np.bool_]

MAX_BANDS = 3000  # what a browser paints in some milliseconds, whatever the size of the log
_COLUMN_ARRAYS = ("sample_us", "allocated_bytes", "rest_bytes", "reserved_bytes")
_BAND_ARRAYS = (
    "start_us",
    "end_us",
    "first_column",
    "end_column",
    "size_bytes",
    "allocation",
    "before_log",
)
TYPE_CODES = {"float64": "f8", "float32": "f4", "int32": "i4", "uint16": "u2", "uint8": "u1"}


@dataclass(frozen=True)
class Lit:
    """What stays coloured while the rest fades, and why."""

    rows: Flags | None
    lines: tuple[str, ...]


class ShownMemory:
    """One device's log with all that is worked out for showing it, once.

    Parameters
    ----------
    session, log : Session and MemoryLog
        The recording, and the replayed log.
    """

    def __init__(self, session: Session, log: MemoryLog) -> None:
        self.session, self.log = session, log
        self._colours: dict[str, Colours] = {}

    @cached_property
    def events(self) -> MemoryLog:
        """The log by event."""
        return by_event(self.log)

    @cached_property
    def makers(self) -> pd.DataFrame:
        """Who made each allocation."""
        return makers_of(self.session, self.log)

    @cached_property
    def categories(self) -> pd.DataFrame:
        """What each allocation is for."""
        return categories_of(self.log)

    @cached_property
    def _row(self) -> dict[int, int]:
        ids = self.log.allocations["allocation"].tolist()
        return {allocation: row for row, allocation in enumerate(ids)}

    def row_of(self, allocation: int) -> int | None:
        """Where an allocation stands in the log; None if it is not there."""
        return self._row.get(allocation)

    def colours(self, by: str) -> Colours:
        """Colours by one grouping."""
        if by not in self._colours:
            self._colours[by] = colours_of(self.session, self.log, by)
        return self._colours[by]

    def lit(self, chosen: Selection | None, query: str, window: TimeWindow) -> Lit:
        """What a selection and a search pick out, with a sentence about each."""
        rows: Flags | None = None
        lines: list[str] = []
        if query.strip():
            rows = allocations_like(self.session, self.log, query)
            lines.append(words.matches(query, counted(self.log, rows, window)))
        if chosen is not None:
            mine, line = self._chosen(chosen)
            lines += [line] if line else []
            if mine is not None and mine.any():
                rows = mine if rows is None else rows & mine
        return Lit(rows, tuple(lines))

    def _chosen(self, chosen: Selection) -> tuple[Flags | None, str]:
        stack = self.log.allocations["stack"]
        if chosen.table == "allocations" and chosen.row is not None:
            row = self.row_of(chosen.row)
            own = None if row is None else stack.iloc[row]
            if row is None or own is None or pd.isna(own):
                return (None if row is None else np.arange(len(stack)) == row), ""
            return stack.eq(own).to_numpy(bool, na_value=False), ""
        if chosen.table == "stacks":
            return stack.eq(chosen.row).to_numpy(bool, na_value=False), ""
        during = allocations_during(
            self.session, self.log, chosen.table,
            name=chosen.name, row=chosen.row, recording=chosen.recording,
        )  # fmt: skip
        if during is None:
            return None, ""
        return during.made, words.made_during(self.log, chosen.name, during)

    def message(
        self, window: TimeWindow, lit: Lit, *, event_axis: bool, by: str, columns: int, rows: int
    ) -> tuple[dict[str, Any], list[bytes]]:
        """What the browser draws: a message and its typed arrays."""
        drawn = self.events if event_axis else self.log
        colours = self.colours(by)
        bright = np.ones(len(drawn.allocations), dtype=bool) if lit.rows is None else lit.rows
        picture = picture_of(
            drawn, window, columns=columns, max_bands=MAX_BANDS, rows=rows,
            groups=colours.keys(bright),
        )  # fmt: skip
        merged = colours.of_merged(self.log, picture.merged.group)
        arrays = _arrays(picture, colours, merged, bright)
        content = {
            "arrays": [[name, TYPE_CODES[str(a.dtype)]] for name, a in arrays.items()],
            "peak": _peak(drawn, picture),
            "refused": self._refused(event_axis=event_axis),
            "alarm": [theme(dark=False).alarm, theme(dark=True).alarm],
            "palette": colours.palette,
            "legend": legend(drawn, colours, picture),
            "merged_names": merged.names,
            "in_words": words.in_words(drawn, picture),
            "drawn": words.drawn(picture),
        }
        return content, [array.tobytes() for array in arrays.values()]

    def _refused(self, *, event_axis: bool) -> list[dict[str, Any]]:
        """Requests that failed, on the axis that is shown."""
        return [
            {
                "us": (int(self.log.states_at(one.ts_ns)) if event_axis else one.ts_ns) / NS_PER_US,
                "text": one.text,
            }
            for one in refused(self.session, self.log.device)
        ]

    def window_lines(self, window: TimeWindow, *, event_axis: bool) -> list[str]:
        """What was made in the time shown, and whether it happens in a moment of it."""
        made = words.made_in_window(self.log, allocations_in(self.log, window))
        timed = self.log.device.axis in ("time", "own time") and not event_axis
        return [made, words.crowded(self.log.ts_ns, window) if timed else ""]

    def tip(self, allocation: int) -> dict[str, Any]:
        """What hovering over a band tells beyond its size and life."""
        row = self.row_of(allocation)
        if row is None:
            return {"lines": [], "frames": [], "count": 0}
        life = self.log.allocations.iloc[row]
        frames = [words.short(text) for text in words.brief_stack(self.log, words.stack_id(life))]
        lines = words.about(life, self.categories.iloc[row], self.makers.iloc[row])
        return {"lines": lines, "frames": frames, "count": len(frames)}

    def selected(self, allocation: int) -> dict[str, Any]:
        """One allocation for the panel beneath the picture."""
        row = self.row_of(allocation)
        if row is None:
            return {}
        told = words.about(
            self.log.allocations.iloc[row], self.categories.iloc[row], self.makers.iloc[row]
        )
        return words.selected(self.log, row, told)


@remembered
def shown_memory(session: Session, device: MemoryDevice | None) -> ShownMemory:
    """What is worked out for showing one device's memory."""
    return ShownMemory(session, memory_log(session, device))


def _arrays(
    picture: MemoryPicture, colours: Colours, merged: MergedColours, bright: Flags
) -> dict[str, npt.NDArray[Any]]:
    arrays = {name: getattr(picture, name) for name in (*_COLUMN_ARRAYS, *_BAND_ARRAYS)}
    return {
        **arrays,
        "tone": colours.of_rows(picture.position),
        "lit": bright[picture.position].astype(np.uint8),
        "merged_bytes": picture.merged.bytes_.astype(np.float32).ravel(),
        "merged_count": picture.merged.count.astype(np.int32).ravel(),
        "merged_tone": merged.tone,
        "merged_lit": merged.lit,
        "merged_stack": merged.stack,
    }


def _peak(log: MemoryLog, picture: MemoryPicture) -> dict[str, Any] | None:
    if np.isnan(picture.peak_bytes):
        return None
    return {
        "us": picture.peak_us,
        "bytes": picture.peak_bytes,
        "text": words.peak_text(log, picture),
    }


def in_us(window: TimeWindow) -> list[float]:
    """A window as the browser takes it."""
    return [window.start_ns / NS_PER_US, window.end_ns / NS_PER_US]


def in_ns(start_us: float, end_us: float) -> TimeWindow:
    """A window as the browser gives it."""
    return TimeWindow(round(start_us * NS_PER_US), round(end_us * NS_PER_US))
