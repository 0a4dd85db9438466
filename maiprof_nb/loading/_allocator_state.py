"""The state a memory snapshot ends in: segments and their blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from maiprof_nb.loading._columns import integers, optional_integers
from maiprof_nb.loading.stacks import StackIds
from maiprof_nb.tables import SCHEMAS

_STATES = {
    "active_allocated": "allocated",
    "active_pending_free": "pending_free",  # as written
    "active_awaiting_free": "pending_free",  # as documented
}

_Row = dict[str, Any]


def segments(rows: Sequence[_Row]) -> pd.DataFrame:
    """The table `segments`."""
    kinds = [row.get("segment_type") for row in rows]
    pools = [row.get("segment_pool_id") for row in rows]
    return SCHEMAS["segments"].frame(
        {
            "segment": np.arange(len(rows)),
            "device": integers(rows, "device", default=0),
            "address": integers(rows, "address"),
            "size_bytes": integers(rows, "total_size"),
            "allocated_bytes": integers(rows, "allocated_size", default=0),
            "active_bytes": integers(rows, "active_size", default=0),
            "requested_bytes": optional_integers(rows, "requested_size"),
            "stream": integers(rows, "stream", default=0),
            "pool": [kind if isinstance(kind, str) else None for kind in kinds],
            "pool_id": [_pool_id(pool) for pool in pools],
            "expandable": np.array([bool(row.get("is_expandable")) for row in rows], dtype=bool),
        }
    )


def _pool_id(pool: Any) -> str | None:
    if not isinstance(pool, tuple | list) or not all(isinstance(part, int) for part in pool):
        return None
    return str(tuple(pool))


def _state(block: _Row) -> str:
    state = block.get("state")
    return state if isinstance(state, str) else ""


def blocks(rows: Sequence[_Row], ids: StackIds) -> pd.DataFrame:
    """The table `blocks` of these segments."""
    per_segment = [segment.get("blocks", []) for segment in rows]
    flat = [block for found in per_segment for block in found]
    counts = np.array([len(found) for found in per_segment], dtype=np.int64)
    segment = np.repeat(np.arange(len(rows)), counts)
    size = integers(flat, "size")
    states = [_STATES.get(_state(block), "inactive") for block in flat]
    inactive = np.array([state == "inactive" for state in states], dtype=bool)
    requested = pd.Series(optional_integers(flat, "requested_size"))
    return SCHEMAS["blocks"].frame(
        {
            "block": np.arange(len(flat)),
            "segment": segment,
            "device": integers(rows, "device", default=0)[segment],
            "address": _addresses(rows, flat, size, counts),
            "size_bytes": size,
            "requested_bytes": requested.mask(inactive),  # a free block keeps its last one's
            "state": states,
            "stack": pd.array([ids.of(_frames(block)) for block in flat], dtype="Int64"),
        }
    )


def _addresses(rows: Sequence[_Row], flat: Sequence[_Row], size: Any, counts: Any) -> Any:
    """Blocks tile their segment, so those of torch 2.0, without address, can be placed."""
    before = np.cumsum(size) - size
    first = np.minimum(np.cumsum(counts) - counts, max(len(flat) - 1, 0))
    in_segment = before - np.repeat(before[first] if len(flat) else first, counts)
    placed = np.repeat(integers(rows, "address"), counts) + in_segment
    stated = optional_integers(flat, "address")
    return pd.Series(stated).fillna(pd.Series(placed, dtype="Int64")).to_numpy("int64")


def _frames(block: _Row) -> Any:
    """Frames of the block, or of the newest entry of its history (torch 2.0)."""
    history = block.get("history")
    return history[0].get("frames") if history else block.get("frames")
