"""The table `allocations`: lives of blocks, from the log and the state it ends in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from maiprof_nb.allocator import AllocatorSettings, block_lives
from maiprof_nb.tables import SCHEMAS

_FREED, _LIVES, _MADE, _LATER = range(4)  # before the log: freed in it or not; in it; after it


@dataclass(frozen=True)
class Lives:
    """The table `allocations`, and what did not fit together while it was made.

    Parameters
    ----------
    table : DataFrame
        The table.
    frees_of_unseen, blocks_of_unseen : int
        Allocations made before the log begins, by how they are known: they are freed in it,
        or they live at its end.
    unmatched_frees, replaced : int
        Frees of an address that was free already; allocs at an address still in use.
    after_log : int
        Blocks made or freed between the log's last event and the final state.
    """

    table: pd.DataFrame
    frees_of_unseen: int
    blocks_of_unseen: int
    unmatched_frees: int
    replaced: int
    after_log: int


def lives(
    events: pd.DataFrame,
    blocks: pd.DataFrame,
    segments: pd.DataFrame,
    settings: Mapping[str, Any] | None,
) -> Lives:
    """Follow every device's blocks through its log.

    Parameters
    ----------
    events, blocks, segments : DataFrame
        Tables `allocator_events`, `blocks` and `segments`.
    settings : Mapping or None
        The snapshot's `allocator_settings`; they may change how requests are rounded. None
        where they are not rounded at all.
    """
    stated = None if settings is None else AllocatorSettings.of_snapshot(settings)
    parts: list[pd.DataFrame] = []
    unmatched = replaced = 0
    devices = {*events["device"].unique().tolist(), *blocks["device"].unique().tolist()}
    for device in sorted(devices):
        log, state, held = (_of(table, device) for table in (events, blocks, segments))
        found = block_lives(log, state, held, stated, final_known=len(blocks) > 0)
        parts.append(_placed(found.table, log, device))
        unmatched += found.unmatched_frees
        replaced += found.replaced
    if not parts:
        return Lives(SCHEMAS["allocations"].empty(), 0, 0, 0, 0, 0)
    joined = pd.concat(parts, ignore_index=True) if len(parts) > 1 else parts[0]
    kind = joined["kind"].to_numpy(np.int64)
    event = joined[["alloc_event", "free_event"]].to_numpy(np.int64)
    within = np.where(kind == _FREED, event[:, 1], event[:, 0])
    joined = joined.take(np.lexsort((joined["kept"], within, kind)))
    return Lives(
        table=_table(joined),
        frees_of_unseen=int((kind == _FREED).sum()),
        blocks_of_unseen=int((kind == _LIVES).sum()),
        unmatched_frees=unmatched,
        replaced=replaced,
        after_log=int(joined["gone"].sum() + (kind == _LATER).sum()),
    )


def _placed(found: pd.DataFrame, log: pd.DataFrame, device: int) -> pd.DataFrame:
    """One device's lives with their times and their events in the whole recording; -1 = none."""
    ends = len(log)
    begin, end = (found[side].to_numpy(np.int64) for side in ("first_state", "end_state"))
    opened, closed = found["opened"].to_numpy(np.int64), found["closed"].to_numpy(np.int64)
    at_ns = np.maximum.accumulate(log["ts_ns"].to_numpy(np.int64)) if ends else np.zeros(1, int)
    event = np.append(log["event"].to_numpy(np.int64), -1)
    kind = np.where(opened >= 0, _MADE, np.where(closed >= 0, _FREED, _LIVES))
    kind[(kind == _LIVES) & (begin > 0)] = _LATER
    gone = (closed < 0) & (end <= ends)
    return found.assign(
        device=device,
        kind=kind,
        gone=gone,
        alloc_event=event[opened],
        free_requested_event=event[found["asked"].to_numpy(np.int64)],
        free_event=event[closed],
        ts_ns=at_ns[np.clip(begin - 1, 0, len(at_ns) - 1)],
        end_ns=np.where(gone, at_ns[-1], np.where(closed >= 0, at_ns[closed], -1)),
        before_log=(kind == _FREED) | (kind == _LIVES),
    )


def _table(lives: pd.DataFrame) -> pd.DataFrame:
    columns: dict[str, Any] = {"allocation": np.arange(len(lives))}
    for column in SCHEMAS["allocations"].columns[1:]:
        values = lives[column.name].to_numpy()
        optional = column.dtype == "Int64"
        columns[column.name] = pd.arrays.IntegerArray(values, values < 0) if optional else values
    return SCHEMAS["allocations"].frame(columns)


def _of(table: pd.DataFrame, device: int) -> pd.DataFrame:
    mine = table["device"].eq(device).to_numpy()
    return table if mine.all() else table[mine]
