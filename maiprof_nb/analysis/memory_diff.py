"""What grew between two memory snapshots, or between two moments of one."""

from __future__ import annotations

import pandas as pd

from maiprof_nb.analysis.active_memory import MemoryDevice, MemoryLog, memory_log
from maiprof_nb.errors import UsageError
from maiprof_nb.session import Session


def memory_diff(
    before: Session,
    after: Session | None = None,
    *,
    before_ns: int | None = None,
    after_ns: int | None = None,
    device: MemoryDevice | None = None,
    after_device: MemoryDevice | None = None,
) -> pd.DataFrame:
    """Live bytes and blocks by stack, before and after.

    Parameters
    ----------
    before, after : Session
        Two recordings; without `after`, two moments of the first.
    before_ns, after_ns : int, optional
        The moments, in ns of each session, after all changes of that very time stamp; the end
        of the log by default (its start for `before_ns` where there is one session only).
    device, after_device : MemoryDevice, optional
        One of `memory_devices` of each session; the first by default.

    Returns
    -------
    DataFrame
        ``label, frames, before_bytes, after_bytes, grown_bytes, before_blocks, after_blocks,
        grown_blocks``; largest growth first. Stacks are matched by their frames, so the same
        line in another version of the program is another stack.

    Raises
    ------
    NotAnswerableError
        If a session says nothing about memory.
    UsageError
        If a moment lies outside its log.
    """
    first = memory_log(before, device)
    if after is None:
        second = first
        before_ns = first.span.start_ns if before_ns is None else before_ns
    else:
        second = memory_log(after, after_device)
    old, new = _live(first, before_ns, "before"), _live(second, after_ns, "after")
    both = old.join(new, how="outer")
    for column in both.columns:
        both[column] = both[column].fillna(0).astype("int64")
    both["grown_bytes"] = both["after_bytes"] - both["before_bytes"]
    both["grown_blocks"] = both["after_blocks"] - both["before_blocks"]
    both = both.reset_index()
    columns = [
        "label", "frames", "before_bytes", "after_bytes", "grown_bytes",
        "before_blocks", "after_blocks", "grown_blocks",
    ]  # fmt: skip
    return both[columns].sort_values(
        ["grown_bytes", "after_bytes"], ascending=False, kind="stable", ignore_index=True
    )


def _live(log: MemoryLog, at_ns: int | None, name: str) -> pd.DataFrame:
    """Bytes and blocks in one state, by label and frames."""
    state = len(log.ts_ns) - 1
    if at_ns is not None:
        if not log.span.start_ns <= at_ns <= log.span.end_ns:
            raise UsageError(
                f"{at_ns} ns lies outside the memory log",
                remedy=f"It covers {log.span.start_ns} to {log.span.end_ns} ns",
            )
        state = 0 if at_ns == log.span.start_ns else int(log.states_at(at_ns))
    lives = log.allocations
    living = lives[(lives["first_state"] <= state) & (lives["end_state"] > state)]
    sums = living.groupby("stack", dropna=False)["size_bytes"].agg(["sum", "count"]).reset_index()
    stacks = log.stacks.set_index("stack").astype(object)
    sums["label"] = sums["stack"].map(stacks["label"]).astype(object).fillna("no stack recorded")
    sums["frames"] = sums["stack"].map(stacks["frames"]).astype(object).fillna("")
    table = sums.groupby(["label", "frames"])[["sum", "count"]].sum()
    table = table.rename(columns={"sum": f"{name}_bytes", "count": f"{name}_blocks"})
    unnamed = int(log.allocated_bytes[state]) - int(table[f"{name}_bytes"].sum())
    if unnamed > 0:
        table.loc[("allocated before the recording", ""), :] = [unnamed, 0]
    return table.astype("int64")
