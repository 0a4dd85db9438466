"""Allocations from a log that says how much came or went, with or without addresses."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.timebase import TimeWindow

Ints = npt.NDArray[np.int64]


def paired(events: pd.DataFrame, span: TimeWindow, kind: Any = 0) -> pd.DataFrame:
    """Allocations of a trace: each event that takes an address, to the next one there.

    ``made_by`` is the row of the allocating event, -1 for what was freed but never seen made.
    """
    ts_ns = events["ts_ns"].to_numpy(np.int64)
    size = events["size_bytes"].to_numpy(np.int64)
    address = _addresses(events, size, kind)
    by_address = np.argsort(address, kind="stable")
    same = np.diff(address[by_address]) == 0
    follower = np.full(len(events), -1, dtype=np.int64)
    follower[by_address[:-1][same]] = by_address[1:][same]
    first_there = np.ones(len(events), dtype=bool)
    first_there[by_address[1:][same]] = False
    made = np.flatnonzero(size > 0)
    orphan = np.flatnonzero((size < 0) & first_there)

    end_row = np.concatenate([orphan, follower[made]])
    made_by = np.concatenate([np.full(len(orphan), -1, dtype=np.int64), made])
    ended = end_row >= 0
    begins = np.where(made_by >= 0, ts_ns[made_by], span.start_ns) if len(events) else made_by
    ends = pd.array(np.where(ended, ts_ns[end_row], 0) if len(events) else end_row, dtype="Int64")
    ends[~ended] = pd.NA
    sizes = np.concatenate([-size[orphan], size[made]])
    return pd.DataFrame(
        {
            "allocation": np.arange(len(sizes), dtype=np.int64),
            "ts_ns": begins,
            "end_ns": ends,
            "size_bytes": sizes,
            "requested_bytes": pd.array([pd.NA] * len(sizes), dtype="Int64"),
            "before_log": made_by < 0,
            "made_by": made_by,
            "first": np.where(made_by >= 0, made_by + 1, 0),
            "end": np.where(ended, end_row + 1, len(events) + 1),
        }
    )


def _addresses(events: pd.DataFrame, size: Ints, kind: Any) -> Ints:
    """Addresses; where there are none, stand-ins: a free ends the newest of its size and kind.

    That is a guess at which block was freed, never at how many bytes.
    """
    if events["address"].notna().all():
        return events["address"].to_numpy(np.int64)
    amount = np.abs(size)
    change = pd.Series(np.sign(size))
    alike = pd.DataFrame({"amount": amount, "kind": kind})
    depth = change.groupby([alike["amount"], alike["kind"]]).cumsum().to_numpy(np.int64)
    level = np.where(size > 0, depth, depth + 1)
    classes = alike.assign(level=level).groupby(["amount", "kind", "level"])
    return classes.ngroup().to_numpy().astype(np.int64)
