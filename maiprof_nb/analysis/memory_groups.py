"""The ways to tell allocations apart at a glance: what a colour stands for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._memory_origins import OUTSIDE
from maiprof_nb.analysis.active_memory import MemoryLog
from maiprof_nb.analysis.allocation_makers import makers_of
from maiprof_nb.analysis.memory_categories import CATEGORIES, categories_of
from maiprof_nb.analysis.phases import PHASES
from maiprof_nb.session import Session
from maiprof_nb.timebase import NS_PER_MS, NS_PER_S

Ints = npt.NDArray[np.int64]

_NONE = -1
_AGES = (
    (NS_PER_MS, "under 1 ms"),
    (10 * NS_PER_MS, "1 to 10 ms"),
    (100 * NS_PER_MS, "10 to 100 ms"),
    (NS_PER_S, "0.1 to 1 s"),
    (10 * NS_PER_S, "1 to 10 s"),
    (None, "10 s and more"),
)
_EVENTS = (
    (10, "under 10 events"),
    (100, "10 to 99 events"),
    (1_000, "100 to 999 events"),
    (10_000, "1 000 to 9 999 events"),
    (None, "10 000 events and more"),
)


@dataclass(frozen=True)
class AllocationGroups:
    """A group for each allocation.

    Parameters
    ----------
    by : str
        What tells them apart.
    code : array of int64
        Group of each row of the log's ``allocations``; -1 where nothing tells.
    names : tuple of str
        Name of each code, in the order of the legend; empty for ``stack``, whose codes are
        the log's stack ids.
    missing : str
        What -1 stands for.
    """

    by: str
    code: Ints
    names: tuple[str, ...]
    missing: str


def group_allocations(session: Session, log: MemoryLog, by: str) -> AllocationGroups:
    """Groups of one device's allocations.

    Parameters
    ----------
    session, log : Session and MemoryLog
        The recording, and one device's memory in it.
    by : str
        One of `GROUPINGS`. ``module`` and ``phase`` are those of `allocation_makers`;
        ``age`` is how long it lives in the log.
    """
    return GROUPINGS[by](session, log)


def _by_stack(_session: Session, log: MemoryLog) -> AllocationGroups:
    code = log.allocations["stack"].to_numpy(np.int64, na_value=_NONE)
    return AllocationGroups("stack", code, (), "no stack recorded")


def _by_category(_session: Session, log: MemoryLog) -> AllocationGroups:
    told = [name for name in CATEGORIES if name != "unknown"]
    return _coded("category", categories_of(log)["category"], told, "not known")


def _by_module(session: Session, log: MemoryLog) -> AllocationGroups:
    code, names = pd.factorize(makers_of(session, log)["module"])
    texts = tuple(str(name) for name in names)
    return AllocationGroups("module", code.astype(np.int64), texts, OUTSIDE)


def _by_phase(session: Session, log: MemoryLog) -> AllocationGroups:
    phase = makers_of(session, log)["phase"]
    return _coded("phase", phase, PHASES, "no phase known")


def _by_stream(session: Session, log: MemoryLog) -> AllocationGroups:
    stream = _streams(session, log)
    known = sorted({int(one) for one in stream.dropna()})
    names = [f"stream {one:#x}" if one else "default stream (0)" for one in known]
    return _coded("stream", stream, known, "stream not recorded", names)


def _by_age(_session: Session, log: MemoryLog) -> AllocationGroups:
    lives = log.allocations
    bounds = _EVENTS if log.device.axis == "order" else _AGES
    lived = (lives["end_ns"] - lives["ts_ns"]).to_numpy(np.int64, na_value=0)
    edges = np.array([bound for bound, _ in bounds if bound is not None])
    code = np.searchsorted(edges, lived, side="right").astype(np.int64)
    old = lives["before_log"].to_numpy(bool)
    kept = lives["end_ns"].isna().to_numpy(bool)
    code[old] = len(bounds)
    code[kept] = len(bounds) + 1
    names = (*(text for _, text in bounds), "older than the log, freed in it", "alive at the end")
    return AllocationGroups("age", code, names, "")


GROUPINGS: dict[str, Callable[[Session, MemoryLog], AllocationGroups]] = {
    "stack": _by_stack,
    "category": _by_category,
    "module": _by_module,
    "phase": _by_phase,
    "stream": _by_stream,
    "age": _by_age,
}


def _coded(
    by: str, values: pd.Series[Any], order: Any, missing: str, names: Any = None
) -> AllocationGroups:
    place = {one: code for code, one in enumerate(order)}
    code = values.astype(object).map(place).fillna(_NONE).to_numpy(np.int64)
    return AllocationGroups(by, code, tuple(names or order), missing)


def _streams(session: Session, log: MemoryLog) -> pd.Series[Any]:
    """Stream of each allocation; only snapshots of the allocator know them."""
    lives = session.recordings[log.device.recording].table("allocations")
    if log.device.kind != "snapshot":
        return pd.Series(pd.array([pd.NA] * len(log.allocations), dtype="Int64"))
    mine = lives[lives["device"].eq(log.device.device).to_numpy()]
    return mine["stream"].reset_index(drop=True)
