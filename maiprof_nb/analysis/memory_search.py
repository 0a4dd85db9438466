"""Allocations found by function, file, operator, module or size."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis.active_memory import MemoryLog
from maiprof_nb.analysis.allocation_makers import makers_of
from maiprof_nb.errors import UsageError
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow

Flags = npt.NDArray[np.bool_]

_SIZE = re.compile(r"(>=|<=|>|<|=)\s*(\S*)")
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)(|B|[kmgt](?:i?b)?)", re.IGNORECASE)
_COMPARE: dict[str, Callable[[Any, float], Any]] = {
    ">": operator.gt, "<": operator.lt, ">=": operator.ge, "<=": operator.le, "=": operator.eq,
}  # fmt: skip
_POWERS = "kmgt"


def allocations_like(session: Session, log: MemoryLog, query: str) -> Flags:
    """Whether each row of the log's ``allocations`` matches all words of the query.

    Parameters
    ----------
    session, log : Session and MemoryLog
        The recording, and one device's memory in it.
    query : str
        Words, any case, each a part of a frame (function or file) of the stack, of the
        operator that made the allocation or of its module; or a size, ``>10MiB``, ``<=1GB``,
        ``=512`` (bytes as the allocator rounds them; MB is a million, MiB 1024 x 1024).

    Raises
    ------
    UsageError
        If something behind a comparison is no size.
    """
    lives = log.allocations
    size = lives["size_bytes"].to_numpy(np.int64)
    found = np.ones(len(lives), dtype=bool)
    for word in re.sub(r"([<>=])\s+", r"\1", query).split():
        sized = _SIZE.fullmatch(word)
        if sized:
            found &= _COMPARE[sized[1]](size, bytes_of(sized[2]))
        else:
            found &= _named(session, log, word)
    return found


def bytes_of(text: str) -> float:
    """``10MiB`` -> 10485760.0.

    Raises
    ------
    UsageError
        If it is no size.
    """
    told = _NUMBER.fullmatch(text)
    if told is None:
        raise UsageError(
            f"{text!r} is no size",
            remedy="Write for example >10MiB, <=512KiB, >1GB or =4096 (bytes)",
        )
    unit = told[2].lower().removesuffix("b")
    if not unit:
        return float(told[1])
    decimal = told[2].lower().endswith("b") and "i" not in unit
    return float(float(told[1]) * (1000 if decimal else 1024) ** (_POWERS.index(unit[0]) + 1))


@dataclass(frozen=True)
class Matches:
    """Matching allocations, each as (number, sizes added up in bytes).

    Parameters
    ----------
    all_, at_peak, in_window : (int, int)
        Of the whole log; of those live at its peak; of those living in a window.
    peak_bytes : int
        All that was allocated at the peak.
    """

    all_: tuple[int, int]
    at_peak: tuple[int, int]
    peak_bytes: int
    in_window: tuple[int, int]


def counted(log: MemoryLog, matching: Flags, window: TimeWindow) -> Matches:
    """How many match, and how much that is."""
    lives = log.allocations
    size = lives["size_bytes"].to_numpy(np.int64)
    state = int(log.allocated_bytes.argmax())
    peak = (lives["first_state"] <= state) & (lives["end_state"] > state)
    end = lives["end_ns"].to_numpy(np.int64, na_value=np.iinfo(np.int64).max)
    inside = (lives["ts_ns"] <= window.end_ns) & (end >= window.start_ns)

    def told(rows: Any) -> tuple[int, int]:
        both = matching & np.asarray(rows, dtype=bool)
        return int(both.sum()), int(size[both].sum())

    return Matches(
        all_=told(matching),
        at_peak=told(peak),
        peak_bytes=int(log.allocated_bytes[state]),
        in_window=told(inside),
    )


def _named(session: Session, log: MemoryLog, word: str) -> Flags:
    lives = log.allocations
    if log.stacks.empty:
        found = np.zeros(len(lives), dtype=bool)
    else:
        texts = log.stacks["frames"].astype(object)
        hit = texts.str.contains(word, case=False, regex=False).to_numpy(bool)
        matching = log.stacks["stack"].to_numpy()[hit]
        found = lives["stack"].isin(matching).to_numpy(bool)
    makers = makers_of(session, log)
    for column in ("operator", "module"):
        found |= _containing(makers[column], word)
    return found


def _containing(names: pd.Series[Any], word: str) -> Flags:
    codes, texts = pd.factorize(names)
    hit = np.array([word.lower() in str(text).lower() for text in texts] + [False])
    return np.asarray(hit[codes], dtype=bool)
