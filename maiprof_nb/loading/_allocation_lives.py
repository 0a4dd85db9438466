"""Lives of blocks, from the allocator's log and the state it ends in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.tables import SCHEMAS

MIN_BLOCK_BYTES = 512  # the CUDA caching allocator's unit
_MIB_LOG2 = 20
_KEY = ["device", "address"]

_TYPES = {
    "device": "int64",
    "address": "int64",
    "size_bytes": "int64",
    "requested_bytes": "Int64",
    "ts_ns": "int64",
    "end_ns": "Int64",
    "before_log": "bool",
    "stack": "Int64",
}

_Ints = npt.NDArray[np.int64]


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


def rounded(requested: _Ints, settings: Mapping[str, Any]) -> _Ints:
    """Size in allocated memory of a request, in bytes: at least, where a block is not split."""
    plain = np.maximum(-(-requested // MIN_BLOCK_BYTES), 1) * MIN_BLOCK_BYTES
    table = settings.get("roundup_power2_divisions")
    if not isinstance(table, Mapping) or not any(table.values()):
        return plain
    divisions = np.array([int(table.get(str(1 << power), 0) or 0) for power in range(16)])
    log2 = np.frexp(np.maximum(requested, 1).astype(np.float64))[1] - 1
    wanted = divisions[np.clip(log2 - _MIB_LOG2, 0, len(divisions) - 1)]
    applies = (wanted > 1) & (requested > MIN_BLOCK_BYTES * wanted)
    part = np.maximum((np.int64(1) << log2.astype(np.int64)) // np.maximum(wanted, 1), 1)
    return np.where(applies, -(-requested // part) * part, plain)


def lives(events: pd.DataFrame, blocks: pd.DataFrame, settings: Mapping[str, Any]) -> Lives:
    """Pair every alloc with the completed free of its address, and both with the final state.

    Parameters
    ----------
    events, blocks : DataFrame
        Tables `allocator_events` and `blocks`.
    settings : Mapping
        The snapshot's `allocator_settings`; they may change how requests are rounded.
    """
    log = _paired(events)
    log_start = events.groupby("device")["ts_ns"].first()
    log_end = events.groupby("device")["ts_ns"].max()
    active = blocks[blocks["state"].ne("inactive").to_numpy()]

    unseen_frees = log[~log["is_alloc"] & ~log["same_as_previous"]].sort_values("event")
    last_is_alloc = log[~log["same_as_next"]].set_index(_KEY)["is_alloc"]
    last_seen = last_is_alloc.reindex(pd.MultiIndex.from_frame(active[_KEY])).array
    unseen_blocks = active[pd.isna(last_seen)]
    later_blocks = active[~pd.isna(last_seen) & (last_seen != True)]  # noqa: E712 - missing differs

    made, gone = _made(log, active, settings, state_known=len(blocks) > 0)
    made.loc[gone, "end_ns"] = made.loc[gone, "device"].map(log_end).astype("Int64")
    parts = [
        unseen_frees.assign(
            requested_bytes=unseen_frees["size_bytes"],
            size_bytes=rounded(unseen_frees["size_bytes"].to_numpy(), settings),
            ts_ns=unseen_frees["device"].map(log_start),
            end_ns=unseen_frees["ts_ns"],
            stack=None,  # the stack of a free does not say who allocated
            before_log=True,
        ),
        _from_state(unseen_blocks, log_start).assign(before_log=True),
        made.assign(before_log=False),
        _from_state(later_blocks, log_end).assign(before_log=False),
    ]
    table = pd.concat([part[list(_TYPES)].astype(_TYPES) for part in parts], ignore_index=True)
    table.insert(0, "allocation", np.arange(len(table), dtype=np.int64))
    return Lives(
        table=SCHEMAS["allocations"].frame({name: table[name] for name in ("allocation", *_TYPES)}),
        frees_of_unseen=len(unseen_frees),
        blocks_of_unseen=len(unseen_blocks),
        unmatched_frees=int(
            (~log["is_alloc"] & log["same_as_previous"] & ~log["previous_is_alloc"]).sum()
        ),
        replaced=int((log["is_alloc"] & log["same_as_previous"] & log["previous_is_alloc"]).sum()),
        after_log=int(gone.sum()) + len(later_blocks),
    )


def _paired(events: pd.DataFrame) -> pd.DataFrame:
    """Allocs and frees by address and time, each beside its neighbours at that address."""
    free = "free_completed"
    if not events["action"].eq(free).any():  # a log may leave out actions
        free = "free_requested"
    log = events[events["action"].isin(["alloc", free]).to_numpy()]
    log = log.assign(address=log["address"].fillna(0).astype("int64"))
    log = log.iloc[np.lexsort([log["event"], log["address"], log["device"]])]
    is_alloc = log["action"].eq("alloc").to_numpy()
    keys = log[_KEY].to_numpy()
    same = (keys[1:] == keys[:-1]).all(axis=1)
    edge = [False][: len(log)]
    same_as_next = np.concatenate([same, edge]).astype(bool)
    end = log["ts_ns"].astype("Int64").shift(-1)
    return log.assign(
        is_alloc=is_alloc,
        same_as_next=same_as_next,
        same_as_previous=np.concatenate([edge, same]).astype(bool),
        previous_is_alloc=np.roll(is_alloc, 1),
        end_ns=end.mask(~(is_alloc & same_as_next)),
    )


def _made(
    log: pd.DataFrame, active: pd.DataFrame, settings: Mapping[str, Any], *, state_known: bool
) -> tuple[pd.DataFrame, npt.NDArray[np.bool_]]:
    """Allocations of the log with their sizes, and which of them the final state lacks."""
    made = log[log["is_alloc"]].sort_values("event")
    state = active.drop_duplicates(_KEY).set_index(_KEY)[["size_bytes", "stack"]]
    held = state.reindex(pd.MultiIndex.from_frame(made[_KEY])).set_index(made.index)
    alive = made["end_ns"].isna()
    in_state = alive & held["size_bytes"].notna()
    requested = made["size_bytes"]
    estimate = pd.Series(rounded(requested.to_numpy(), settings), made.index)
    sized = made.assign(
        requested_bytes=requested,
        size_bytes=estimate.mask(in_state, held["size_bytes"]).astype("int64"),
        stack=made["stack"].fillna(held["stack"].where(in_state)),
    )
    return sized, (alive & ~in_state & state_known).to_numpy()


def _from_state(blocks: pd.DataFrame, moment: pd.Series[Any]) -> pd.DataFrame:
    """Blocks of the final state that the log never saw made."""
    return blocks.assign(ts_ns=blocks["device"].map(moment).fillna(0), end_ns=None)
