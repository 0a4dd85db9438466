"""Which colour each band of the memory view has, and the legend that says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from maiprof_nb import units
from maiprof_nb.analysis.active_memory import MemoryLog, MemoryPicture
from maiprof_nb.analysis.memory_categories import categories_of
from maiprof_nb.analysis.memory_groups import AllocationGroups, group_allocations
from maiprof_nb.session import Session
from maiprof_widgets.figures.memory_colours import ALIVE, FADES, GREY, ages, chosen, hues
from maiprof_widgets.views import _memory_words as words

Ints = npt.NDArray[np.int64]

_LEGEND_ROWS = 8
_RANKED = ("stack", "module")  # groups without an order of their own: the largest first
_NONE = -1
_OLD = "older than the log"


@dataclass(frozen=True)
class Colours:
    """Groups of one log with their tones, the same at every zoom.

    Parameters
    ----------
    groups : AllocationGroups
        What a colour stands for.
    tones : dict of int to int
        Code of a group -> place in the palette, or `GREY`.
    old : array of bool
        Allocations drawn grey whatever their group: older than the log, by stack.
    names : dict of int to str
        Code -> what the legend says; empty where it is named when shown (stacks).
    """

    groups: AllocationGroups
    tones: dict[int, int]
    old: npt.NDArray[np.bool_]
    names: dict[int, str]

    @property
    def palette(self) -> dict[str, Any]:
        """Hues on light and on dark ground, and how far further rounds are faded."""
        found = ages if self.groups.by == "age" else hues
        return {
            "light": list(found(dark=False)),
            "dark": list(found(dark=True)),
            "fades": list(FADES),
            "chosen": [chosen(dark=False), chosen(dark=True)],
        }

    def of_rows(self, rows: Ints) -> npt.NDArray[np.uint8]:
        """The tone of these rows of the log's ``allocations``."""
        tones = [self.tones.get(code, GREY) for code in self.groups.code[rows].tolist()]
        found = np.array(tones, dtype=np.uint8)
        found[self.old[rows]] = GREY
        return found

    def keys(self, bright: npt.NDArray[np.bool_]) -> Ints:
        """What is merged with what: a group, apart by whether it is lit; what is grey as one."""
        code = np.where(self.old, _NONE, self.groups.code)
        return np.asarray((code * 2 + self.old) * 2 + bright, dtype=np.int64)

    def of_merged(self, log: MemoryLog, keys: Ints) -> MergedColours:
        """What merged bands of these keys are drawn as."""
        code, old = keys // 4, keys // 2 % 2 == 1
        names = self.named(log, code.tolist())
        tones = [self.tones.get(one, GREY) for one in code.tolist()]
        return MergedColours(
            code=code,
            old=old,
            names=[_OLD if grey else name for grey, name in zip(old, names, strict=True)],
            tone=np.where(old, GREY, tones).astype(np.uint8),
            lit=(keys % 2).astype(np.uint8),
            stack=np.where(old | (self.groups.by != "stack"), _NONE, code).astype(np.int32),
        )

    def named(self, log: MemoryLog, codes: list[int]) -> list[str]:
        """What to call these groups."""
        if self.groups.by == "stack":
            return words.names(log, codes)
        return [self.names.get(code, self.groups.missing) for code in codes]


@dataclass(frozen=True)
class MergedColours:
    """What each merged band is drawn as; ``stack`` is -1 where it is of several."""

    code: Ints
    old: npt.NDArray[np.bool_]
    names: list[str]
    tone: npt.NDArray[np.uint8]
    lit: npt.NDArray[np.uint8]
    stack: npt.NDArray[np.int32]


def colours_of(session: Session, log: MemoryLog, by: str) -> Colours:
    """Colours of one log by one of the `GROUPINGS`."""
    groups = group_allocations(session, log, by)
    old = np.zeros(len(log.allocations), dtype=bool)
    if by == "stack" and log.device.axis != "state":
        old = log.allocations["before_log"].to_numpy(bool)
    names = dict(enumerate(groups.names))
    if by == "category":
        names = _with_confidence(log, groups)
    return Colours(groups, _tones(log, groups), old, names)


def legend(log: MemoryLog, colours: Colours, picture: MemoryPicture) -> list[dict[str, Any]]:
    """The groups that fill most of the picture, with their bytes at its peak."""
    top = _column_of_peak(picture)
    merged = picture.merged
    code, old, area, there = (np.concatenate(pair) for pair in zip(
        _of_bands(colours, picture, top),
        (merged.group // 4, merged.group // 2 % 2 == 1, merged.bytes_.sum(axis=1),
         merged.bytes_[:, top]),
        strict=True,
    ))  # fmt: skip
    codes, place = np.unique(code[~old], return_inverse=True)
    filled = np.bincount(place, area[~old], len(codes))
    at_peak = dict(zip(codes.tolist(), np.bincount(place, there[~old], len(codes)), strict=True))
    if colours.groups.by in _RANKED:
        shown = [int(codes[i]) for i in np.argsort(-filled)[:_LEGEND_ROWS]]
    else:
        shown = sorted(codes.tolist(), key=lambda one: (one == _NONE, one))
    entries = [
        _entry(name, at_peak[one], colours.tones.get(one, GREY))
        for one, name in zip(shown, colours.named(log, shown), strict=True)
    ]
    if old.any():
        entries.append(_entry(_OLD, float(there[old].sum()), GREY))
    if np.nansum(picture.rest_bytes) > 0:
        rest = float(np.nan_to_num(picture.rest_bytes[top]))
        entries.append(_entry(words.rest_label(log), rest, None))
    return entries


def _of_bands(colours: Colours, picture: MemoryPicture, top: int) -> tuple[Any, ...]:
    """Code, greyness, bytes x columns and bytes at the peak of each band."""
    columns = picture.end_column.astype(np.float64) - picture.first_column
    there = (picture.first_column <= top) & (picture.end_column > top)
    rows = picture.position
    size = picture.size_bytes
    return colours.groups.code[rows], colours.old[rows], size * columns, size * there


def _entry(name: str, size_bytes: float, tone: int | None) -> dict[str, Any]:
    size = units.size(size_bytes) if size_bytes else "none"
    return {"label": name, "size": size, "tone": tone, "rest": tone is None}


def _column_of_peak(picture: MemoryPicture) -> int:
    return int(np.nanargmax(picture.allocated_bytes)) if not np.isnan(picture.peak_bytes) else 0


def _tones(log: MemoryLog, groups: AllocationGroups) -> dict[int, int]:
    if groups.by == "age":
        last = len(groups.names)
        told = {code: code for code in range(last - 2)}
        return told | {last - 2: GREY, last - 1: ALIVE}
    if groups.by not in _RANKED:
        return {code: code for code in range(len(groups.names))}
    return _ranked_tones(log, groups)


def _ranked_tones(log: MemoryLog, groups: AllocationGroups) -> dict[int, int]:
    """By bytes x time in the whole log, so that zooming keeps them."""
    lives = log.allocations
    end = lives["end_ns"].fillna(log.span.end_ns)
    weight = (lives["size_bytes"] * (end - lives["ts_ns"] + 1).astype("float64")).to_numpy(float)
    codes, place = np.unique(groups.code, return_inverse=True)
    order = np.argsort(-np.bincount(place, weight, len(codes)), kind="stable")
    count = len(hues(dark=False)) * len(FADES)
    ranked = {int(codes[i]): rank % count for rank, i in enumerate(order)}
    return ranked | {_NONE: GREY}


def _with_confidence(log: MemoryLog, groups: AllocationGroups) -> dict[int, str]:
    """Names of categories with the mean confidence of their bytes."""
    sure = categories_of(log)["confidence"].to_numpy(np.float64)
    size = log.allocations["size_bytes"].to_numpy(np.float64)
    found = {}
    for code, name in enumerate(groups.names):
        mine = groups.code == code
        if mine.any():
            share = float(np.average(sure[mine], weights=size[mine] + 1))
            found[code] = f"{name}, {words.confidence(share)}"
    return found
