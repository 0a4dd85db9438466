"""What the rows of `category_changes` say of single allocations, each under its category.

In place of a stack stands the category: row ``k`` of the stacks is category ``k``.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from maiprof_nb.analysis._paired_changes import paired
from maiprof_nb.timebase import TimeWindow


def single_lives(changes: pd.DataFrame, span: TimeWindow) -> pd.DataFrame:
    """Allocations where a row is one event: a loss ends the newest of its size and category."""
    before = changes["before_log"].to_numpy(bool)
    codes = changes["category"].cat.codes.to_numpy(np.int64)
    lives = paired(changes.assign(address=pd.NA), span, codes)
    made_by = lives.pop("made_by").to_numpy(np.int64)
    ended_by = lives["end"].to_numpy(np.int64) - 1
    state = np.append(np.cumsum(~before), [(~before).sum() + 1])
    of_row = np.append(codes, -1)[made_by]
    return lives.assign(
        before_log=lives["before_log"] | np.append(before, False)[made_by],
        stack=pd.arrays.IntegerArray(of_row, of_row < 0),
        first=np.append(np.cumsum(~before), 0)[made_by],
        end=state[ended_by],
    )


def category_sums(changes: pd.DataFrame, span: TimeWindow) -> pd.DataFrame:
    """One row for each category and stretch of the log in which its sum stays the same."""
    before = changes["before_log"].to_numpy(bool)
    codes = changes["category"].cat.codes.to_numpy(np.int64)
    state = np.cumsum(~before)
    ts_ns = np.where(before, span.start_ns, changes["ts_ns"].to_numpy(np.int64))
    order = np.argsort(codes, kind="stable")
    total = changes["size_bytes"].groupby(codes).cumsum().to_numpy(np.int64)[order]
    following = np.append(order[1:], -1)
    ends = np.append(codes[order][1:] == codes[order][:-1], False)[: len(order)]
    end_ns = pd.arrays.IntegerArray(np.where(ends, ts_ns[following], 0), ~ends)
    made = pd.DataFrame(
        {
            "ts_ns": ts_ns[order],
            "end_ns": end_ns,
            "size_bytes": total,
            "requested_bytes": pd.array([pd.NA] * len(order), dtype="Int64"),
            "before_log": before[order],
            "stack": pd.array(codes[order], dtype="Int64"),
            "first": state[order],
            "end": np.where(ends, state[following], state[-1] + 1) if len(order) else state,
        }
    )
    made = made[(made["size_bytes"] > 0) & (made["first"] < made["end"])]
    made = made.sort_values("first", kind="stable", ignore_index=True)
    return made.assign(allocation=np.arange(len(made), dtype=np.int64))
