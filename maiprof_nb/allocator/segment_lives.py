"""Lives of segments, from the allocator's log and the state it ends in."""

from __future__ import annotations

import numpy as np
import pandas as pd

from maiprof_nb.allocator.lives import doing, lives
from maiprof_nb.allocator.rules import DEFAULT_POOL, LARGE_SEGMENT, SMALL_SEGMENT

_WHOLE = ("segment_alloc", "segment_free")
_STEPS = ("segment_map", "segment_unmap")
_COLUMNS = ["address", "size_bytes", "stream", "pool"]


def segment_lives(events: pd.DataFrame, segments: pd.DataFrame) -> pd.DataFrame:
    """Every segment one device had during its log.

    Parameters
    ----------
    events, segments : DataFrame
        The device's part of the tables `allocator_events` and `segments`.

    Returns
    -------
    DataFrame
        By address: ``address, size_bytes, stream, pool, pool_id, expandable, first_state,
        end_state``; expandable segments in steps of 2 MiB. The pool of a segment that was gone
        at the end is not in the log and is taken to be the default one.
    """
    position = np.flatnonzero(doing(events, *_WHOLE, *_STEPS))
    log = events[["action", "address", "size_bytes", "stream"]].iloc[position]
    log = log.assign(position=position, action=log["action"].astype(object))
    grows = log["action"].isin(_STEPS).to_numpy(bool)
    size = log["size_bytes"].to_numpy(np.int64)
    small = np.where(grows, size % LARGE_SEGMENT != 0, size == SMALL_SEGMENT)
    log["pool"] = np.where(small, "small", "large")
    final = segments[[*_COLUMNS, "pool_id", "expandable"]]
    final = final.assign(
        pool=final["pool"].astype(object), pool_id=final["pool_id"].astype(object)
    ).fillna({"pool_id": DEFAULT_POOL})
    steps = final["expandable"].to_numpy(bool)
    ends = len(events)
    whole = _held(log[~grows], _WHOLE[0], final[~steps], ends)
    pieces = _held(_in_steps(log[grows]), _STEPS[0], _in_steps(final[steps]), ends)
    made = pd.concat([whole.assign(expandable=False), pieces.assign(expandable=True)])
    made = made[made["first_state"] < made["end_state"]]
    return made.sort_values(["address", "first_state"], ignore_index=True)


def _in_steps(rows: pd.DataFrame) -> pd.DataFrame:
    count = np.maximum(rows["size_bytes"].to_numpy(np.int64) // SMALL_SEGMENT, 1)
    made = rows.loc[rows.index.repeat(count)].reset_index(drop=True)
    turn = np.arange(len(made)) - np.repeat(np.cumsum(count) - count, count)
    made["address"] = made["address"].astype("Int64") + turn * SMALL_SEGMENT
    made["size_bytes"] = SMALL_SEGMENT
    return made


def _held(log: pd.DataFrame, taken: str, final: pd.DataFrame, ends: int) -> pd.DataFrame:
    found = lives(
        log["address"].to_numpy(np.int64, na_value=0),
        log["position"].to_numpy(np.int64),
        log["action"].eq(taken).to_numpy(bool),
        final["address"].to_numpy(np.int64),
        ends,
    )
    kept = found.kept >= 0
    logged = np.where(found.opened >= 0, found.opened, found.closed)[~kept]
    made = pd.DataFrame({"address": found.address})
    for column in ("size_bytes", "stream", "pool"):
        values = np.empty(len(made), dtype=object)
        values[~kept] = log[column].to_numpy(object)[logged]
        values[kept] = final[column].to_numpy(object)[found.kept[kept]]
        made[column] = pd.Series(values, dtype=object if column == "pool" else "int64")
    pools = np.append(final["pool_id"].to_numpy(object), DEFAULT_POOL)
    made["pool_id"] = pools[found.kept]  # -1 = the last
    return made.assign(first_state=found.first_state, end_state=found.end_state)
