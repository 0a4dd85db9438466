"""One device's allocator log with what every picture of its segments needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis.active_memory import MemoryDevice, MemoryLog, memory_log
from maiprof_nb.analysis.allocator_state import (
    AllocatorHistory,
    Pieces,
    allocation_rows,
    allocator_history,
    pieces_of,
    state_of,
)
from maiprof_nb.analysis.device_size import DeviceSize, device_size
from maiprof_nb.analysis.fragmentation import fragmentation_of, holes_in, room
from maiprof_nb.analysis.segment_picture import (
    MERGED,
    SegmentPicture,
    one_segment,
    row_each,
    segment_picture,
)
from maiprof_nb.session import Session
from maiprof_widgets.figures.memory_colours import FADES, GREY, hues
from maiprof_widgets.figures.theme import theme
from maiprof_widgets.views import _allocator_words as words
from maiprof_widgets.views import _memory_words as memory_words
from maiprof_widgets.views._refused import Refused, refused

Ints = npt.NDArray[np.int64]

_CURVE_POINTS = 400
_LEGEND_ROWS = 6
_SEGMENT_ARRAYS = ("address", "segment_bytes", "unused_bytes", "cells")
_CELL_ARRAYS = ("size_bytes", "kind", "block")


@dataclass(frozen=True)
class SegmentLog:
    """What one device's log says of its segments; worked out when first asked for.

    Parameters
    ----------
    session : Session
        What was recorded.
    device : MemoryDevice
        One of a snapshot.
    """

    session: Session
    device: MemoryDevice
    _named: dict[tuple[int, ...], list[str]] = field(default_factory=dict, compare=False)

    @cached_property
    def history(self) -> AllocatorHistory:
        """Lives of blocks and segments."""
        return allocator_history(self.session, self.device)

    @cached_property
    def log(self) -> MemoryLog:
        """Lives of allocations, and the stacks."""
        return memory_log(self.session, self.device)

    @cached_property
    def alone(self) -> dict[str, bool]:
        """Whether segments have a row each, at every moment."""
        return row_each(self.history)

    @cached_property
    def curve(self) -> pd.DataFrame:
        """Reserved, allocated and what fits over the whole log."""
        return fragmentation_of(self.history, points=_CURVE_POINTS)

    @cached_property
    def size(self) -> DeviceSize | None:
        """How much memory the device has, where anything says so."""
        return device_size(self.session, self.device)

    @cached_property
    def refused(self) -> list[Refused]:
        """Requests that failed."""
        return refused(self.session, self.device)

    @property
    def opening(self) -> int:
        """The most telling state: of the largest request that failed, else the peak."""
        worst = [one.state for one in self.refused if one.text]
        curve = self.curve
        return worst[0] if worst else _state_of_most(curve, curve["allocated_bytes"])

    @cached_property
    def allocations(self) -> Ints:
        """The row of `allocations` of each block."""
        return allocation_rows(self.session, self.history)

    @cached_property
    def stacks(self) -> Ints:
        """The stack of each block; -1 = none was recorded."""
        return self.history.blocks["stack"].fillna(-1).to_numpy(np.int64)

    @cached_property
    def tones(self) -> Ints:
        """A colour for each block: that of its stack in the memory timeline."""
        lives = self.log.allocations
        end = lives["end_ns"].fillna(self.log.span.end_ns)
        weight = lives["size_bytes"] * (end - lives["ts_ns"] + 1).astype("float64")
        filled = weight.groupby(lives["stack"].fillna(-1)).sum().sort_values(ascending=False)
        rank = pd.Series(np.arange(len(filled)), index=filled.index.astype("int64"))
        tones = len(hues(dark=False)) * len(FADES)
        found = rank.reindex(self.stacks).fillna(0).to_numpy(np.int64) % tones
        return np.where(self.stacks < 0, GREY, found)

    def about(self) -> dict[str, Any]:
        """The whole log for the browser: its length, curves and marked moments.

        Raises
        ------
        NotAnswerableError
            If the log does not fit its segments.
        """
        curve = self.curve
        return {
            "last": self.history.last_state,
            "palette": {
                "light": list(hues(dark=False)),
                "dark": list(hues(dark=True)),
                "fades": list(FADES),
            },
            "still": self.device.axis == "state",
            "curve": {
                "state": curve["state"].tolist(),
                "reserved": curve["reserved_bytes"].tolist(),
                "allocated": curve["allocated_bytes"].tolist(),
                "fits": curve["fits_bytes"].tolist(),
            },
            "refused": [one.state for one in self.refused],
            "refused_text": next((one.text for one in self.refused if one.text), ""),
            "alarm": [theme(dark=False).alarm, theme(dark=True).alarm],
            "opening": self.opening,
            "peak": _state_of_most(curve, curve["allocated_bytes"]),
            "most_unused": _state_of_most(curve, curve["unused_bytes"]),
        }

    def alive(self, state: int) -> Any:
        """Which blocks are in use, or wait to be freed, in a state."""
        first, end = (self.history.blocks[side].to_numpy() for side in ("first_state", "end_state"))
        return (first <= state) & (state < end)

    def picture(self, state: int, columns: int, order: str) -> SegmentPicture:
        """All segments of one state."""
        cut = pieces_of(self.history, state)
        return segment_picture(cut, self.alone, columns=columns, order=order)

    def answer(
        self, state: int, *, columns: int, order: str, focus: int | None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """One state for the browser: words, and arrays by name; `focus` is drawn large."""
        cut = pieces_of(self.history, state)
        picture = segment_picture(cut, self.alone, columns=columns, order=order)
        found = room(cut, None if self.size is None else self.size.size_bytes)
        arrays = self._arrays(picture, "")
        reply = {
            "state": state,
            "moment": words.moment(self.history, self.log, state),
            "figures": words.figures(found, self._pending_bytes(state), self.size),
            "in_words": words.in_words(found, picture),
            "merged_below": picture.merged_below_bytes,
            "groups": [
                {
                    "title": words.group_title(row),
                    "segments": int(row.segments),
                    "row_bytes": int(row.row_bytes),
                    "alone": bool(row.one_per_row),
                    "small": row.pool == "small",
                }
                for row in picture.groups.itertuples()
            ],
            "legend": self._legend(state),
        }
        single, chosen = self._single(cut, picture, focus, columns)
        if single is not None:
            arrays |= self._arrays(single, "one_")
            title = words.segment_title(single, chosen=chosen)
            reply["one"] = {"title": title, "merged_below": single.merged_below_bytes}
        return reply, arrays

    def holders(self, state: int) -> dict[str, Any]:
        """Whose blocks lie beside holes."""
        found = holes_in(state_of(self.history, state), self.log.stacks)
        stranded = int(found["held_bytes"].sum())
        return {
            "rows": words.holders(found, self.log, stranded),
            "more": max(len(found) - words.MOST_HOLDERS, 0),
        }

    def selected_block(self, row: int, state: int) -> dict[str, Any]:
        """The block of a row of `allocations`; empty if there is none."""
        places = np.flatnonzero(self.allocations == row)
        if not len(places):
            return {}
        block = int(places[0])
        life = self.history.blocks.iloc[block]
        return {
            "block": block,
            "address": int(life["address"]),
            "size": int(life["size_bytes"]),
            "text": words.chosen_block(self.history, self.log, block, state),
            "go_to": None if self.alive(state)[block] else int(life["first_state"]),
        }

    def selected_stack(self, stack: int, state: int) -> dict[str, Any]:
        """All blocks of a stack."""
        mine = self.alive(state) & (self.stacks == stack)
        size = int(self.history.blocks["size_bytes"].to_numpy()[mine].sum())
        text = words.chosen_stack(self.log, stack, int(mine.sum()), size)
        return {"stack": stack, "text": text, "go_to": None}

    def _single(
        self, cut: Pieces, picture: SegmentPicture, wanted: int | None, columns: int
    ) -> tuple[SegmentPicture | None, bool]:
        """The segment asked for, or that with most stranded memory; which of the two it is."""
        found = None if wanted is None else one_segment(cut, wanted, columns=columns)
        if found is not None or not len(picture.address):
            return found, True
        torn = picture.unused_bytes * (picture.unused_bytes < picture.segment_bytes)
        at = int(picture.address[int(torn.argmax())])
        return one_segment(cut, at, columns=columns), False

    def _arrays(self, picture: SegmentPicture, prefix: str) -> dict[str, Any]:
        single = (picture.kind != MERGED) & (picture.block >= 0)
        block = picture.block[single]
        stack = np.full(len(single), -1, dtype=np.int32)
        stack[single] = self.stacks[block]
        tone = np.full(len(single), GREY, dtype=np.uint8)
        tone[single] = self.tones[block]
        arrays = {name: getattr(picture, name) for name in (*_SEGMENT_ARRAYS, *_CELL_ARRAYS)}
        arrays |= {"used_bytes": picture.used_bytes.astype(np.float32)}
        arrays |= {"stack": stack, "tone": tone}
        return {f"{prefix}{name}": values for name, values in arrays.items()}

    def _names(self, stacks: tuple[int, ...]) -> list[str]:
        """Of the same stacks again and again while one scrubs."""
        if stacks not in self._named:
            self._named[stacks] = memory_words.names(self.log, list(stacks))
        return self._named[stacks]

    def _pending_bytes(self, state: int) -> int:
        waits = self.alive(state) & (self.history.blocks["pending_state"].to_numpy() <= state)
        return int(self.history.blocks["size_bytes"].to_numpy()[waits].sum())

    def _legend(self, state: int) -> list[dict[str, Any]]:
        """The stacks that hold most at the moment."""
        alive = np.flatnonzero(self.alive(state))
        stacks, row, place = np.unique(self.stacks[alive], return_index=True, return_inverse=True)
        size = self.history.blocks["size_bytes"].to_numpy(np.float64)[alive]
        most = np.argsort(-np.bincount(place, size, len(stacks)), kind="stable")[:_LEGEND_ROWS]
        names = self._names(tuple(stacks[most].tolist()))
        tones = self.tones[alive[row[most]]]
        return [
            {"label": name, "tone": int(tone), "stack": int(stack)}
            for name, tone, stack in zip(names, tones, stacks[most], strict=True)
        ]


def _state_of_most(curve: pd.DataFrame, values: pd.Series[Any]) -> int:
    return int(curve["state"].iloc[int(values.to_numpy().argmax())])
