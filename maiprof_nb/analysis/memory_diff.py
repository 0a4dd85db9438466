"""What grew between two memory snapshots, or between two moments of one."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from maiprof_nb.analysis.active_memory import MemoryDevice, MemoryLog, memory_log
from maiprof_nb.analysis.memory_categories import categories_of
from maiprof_nb.errors import UsageError
from maiprof_nb.session import Session

_KEYS = {"stack": ["label", "frames"], "line": ["label"], "category": ["category"]}
_UNNAMED = "allocated before the recording"
_COUNTS = [
    "before_bytes", "after_bytes", "grown_bytes", "before_blocks", "after_blocks", "grown_blocks",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Moment:
    """One state of a log.

    Parameters
    ----------
    log : MemoryLog
        Whose memory.
    state : int
        After how many of its changes.
    """

    log: MemoryLog
    state: int

    @property
    def ts_ns(self) -> int:
        """When, in ns of the session (event number where the log has only an order)."""
        return int(self.log.ts_ns[self.state])

    @property
    def size_bytes(self) -> int:
        """Allocated then."""
        return int(self.log.allocated_bytes[self.state])


def memory_diff(
    before: Session,
    after: Session | None = None,
    *,
    before_ns: int | None = None,
    after_ns: int | None = None,
    device: MemoryDevice | None = None,
    after_device: MemoryDevice | None = None,
    by: str = "stack",
) -> pd.DataFrame:
    """Live bytes and blocks by stack, line or category, before and after.

    Parameters
    ----------
    before, after : Session
        Two recordings; without `after`, two moments of the first.
    before_ns, after_ns : int, optional
        The moments, in ns of each session, after all changes of that very time stamp; the end
        of the log by default (its start for `before_ns` where there is one session only).
    device, after_device : MemoryDevice, optional
        One of `memory_devices` of each session; the first by default.
    by : str
        ``stack`` (``label, frames``), ``line`` (``label``) or ``category``.

    Returns
    -------
    DataFrame
        What `by` names, then ``before_bytes, after_bytes, grown_bytes, before_blocks,
        after_blocks, grown_blocks`` and ``before_stack, after_stack`` (row id of the stack with
        most bytes in each log, or missing); largest growth first. Stacks are matched by their
        frames, so the same line in another version of the program is another stack.

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
    return diff_of(_moment(first, before_ns), _moment(second, after_ns), by=by)


def diff_of(before: Moment, after: Moment, *, by: str = "stack") -> pd.DataFrame:
    """As `memory_diff`, of states of logs already replayed."""
    if by not in _KEYS:
        raise UsageError(f"memory cannot be compared by {by}", remedy=f"By {', '.join(_KEYS)}")
    old, new = _live(before, "before", by), _live(after, "after", by)
    both = old.join(new, how="outer")
    for column in ("before_bytes", "after_bytes", "before_blocks", "after_blocks"):
        both[column] = both[column].fillna(0).astype("int64")
    both["grown_bytes"] = both["after_bytes"] - both["before_bytes"]
    both["grown_blocks"] = both["after_blocks"] - both["before_blocks"]
    columns = [*_KEYS[by], *_COUNTS, "before_stack", "after_stack"]
    return both.reset_index()[columns].sort_values(
        ["grown_bytes", "after_bytes"], ascending=False, kind="stable", ignore_index=True
    )


def _moment(log: MemoryLog, at_ns: int | None) -> Moment:
    if at_ns is None:
        return Moment(log, len(log.ts_ns) - 1)
    if not log.span.start_ns <= at_ns <= log.span.end_ns:
        raise UsageError(
            f"{at_ns} ns lies outside the memory log",
            remedy=f"It covers {log.span.start_ns} to {log.span.end_ns} ns",
        )
    return Moment(log, 0 if at_ns == log.span.start_ns else int(log.states_at(at_ns)))


def _live(moment: Moment, name: str, by: str) -> pd.DataFrame:
    """Bytes, blocks and the largest stack of one moment, by what `by` names."""
    log, lives = moment.log, moment.log.allocations
    living = (lives["first_state"] <= moment.state) & (lives["end_state"] > moment.state)
    live = lives.loc[living.to_numpy(bool), ["stack", "size_bytes"]]
    stacks = log.stacks.set_index("stack").astype(object)
    if by == "category":
        live["category"] = categories_of(log)["category"][living.to_numpy(bool)].astype(object)
    else:
        live["label"] = live["stack"].map(stacks["label"]).astype(object)
        live["label"] = live["label"].fillna("no stack recorded")
        live["frames"] = live["stack"].map(stacks["frames"]).astype(object).fillna("")
    keys = _KEYS[by]
    table = live.groupby(keys)["size_bytes"].agg(["sum", "count"])
    sums = live.groupby([*keys, "stack"])["size_bytes"].sum().reset_index("stack")
    largest = sums.sort_values("size_bytes", ascending=False, kind="stable")["stack"]
    table["stack"] = largest[~largest.index.duplicated()].astype("Int64")
    unnamed = moment.size_bytes - int(table["sum"].sum())
    if unnamed > 0:
        row = {"label": _UNNAMED, "frames": "", "category": _UNNAMED}
        index = [tuple(row[key] for key in keys)] if len(keys) > 1 else [row[keys[0]]]
        more = pd.DataFrame({"sum": [unnamed], "count": [0], "stack": pd.array([pd.NA], "Int64")})
        more.index = pd.MultiIndex.from_tuples(index, names=keys) if len(keys) > 1 else index
        table = pd.concat([table, more]).rename_axis(keys)
    return table.rename(
        columns={"sum": f"{name}_bytes", "count": f"{name}_blocks", "stack": f"{name}_stack"}
    )
