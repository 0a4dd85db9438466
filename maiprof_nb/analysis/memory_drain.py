"""What became of a moment's memory: how low it lies otherwise, and how fast it was freed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from maiprof_nb.analysis.memory_cycles import cycles_of
from maiprof_nb.analysis.memory_peak import KEPT, MemoryPeak
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.session import Session

MAX_MOMENTS = 200


@dataclass(frozen=True, slots=True)
class Floor:
    """The level a peak stands on.

    Parameters
    ----------
    size_bytes : int
        The level.
    what : str
        What it is the lowest of, for people.
    """

    size_bytes: int
    what: str


def floor_of(session: Session, peak: MemoryPeak) -> Floor:
    """The lowest level of the step or cycle a peak lies in; without any, the lowest afterwards."""
    level = peak.log.allocated_bytes
    try:
        found = cycles_of(session, peak.log)
    except NotAnswerableError:
        return Floor(int(level[peak.state :].min()), "the lowest level afterwards")
    cycles = found.cycles
    here = cycles[(cycles["first_state"] <= peak.state) & (peak.state < cycles["end_state"])]
    if here.empty:
        return Floor(int(level[peak.state :].min()), "the lowest level afterwards")
    what = "the lowest level of its step" if found.how == "steps" else "the floor of its cycle"
    return Floor(int(here["floor_bytes"].iloc[0]), what)


def memory_drain(peak: MemoryPeak, *, moments: int = MAX_MOMENTS) -> pd.DataFrame:
    """How much of what was live at a moment is still live afterwards, by category.

    Parameters
    ----------
    peak : MemoryPeak
        The moment.
    moments : int
        At most so many moments, evenly spread over the frees.

    Returns
    -------
    DataFrame
        ``after_ns`` (since the moment; events where the log has only an order), ``category``
        and ``size_bytes`` still live, each row until the next moment. The first moment is 0,
        the last the end of the log.
    """
    live = peak.live
    category = live["category"].astype(str)
    gone = np.sort(live.loc[live["fate"] != KEPT, "freed_after_ns"].to_numpy(np.int64))
    at = np.unique(gone)
    if len(at) > moments - 2:
        at = at[np.unique(np.linspace(0, len(at) - 1, moments - 2).round().astype(np.int64))]
    at = np.unique(np.concatenate([[0], at, [peak.log.span.end_ns - peak.ts_ns]]))
    end = live["freed_after_ns"].to_numpy(np.float64, na_value=np.inf)
    # the first moment at which it no longer lives; beyond the last for what is never freed
    until = np.where(np.isinf(end), len(at), np.searchsorted(at, end, side="left"))
    rows = pd.DataFrame({"category": category, "until": until, "size_bytes": live["size_bytes"]})
    names = rows.groupby("category")["size_bytes"].sum().sort_values(ascending=False).index
    parts = []
    for name in names:
        mine = rows[rows["category"] == name]
        freed = np.bincount(mine["until"], mine["size_bytes"].to_numpy(np.float64), len(at) + 1)
        left = int(mine["size_bytes"].sum()) - np.cumsum(freed[: len(at)])
        parts.append(
            pd.DataFrame(
                {"after_ns": at, "category": name, "size_bytes": left.round().astype(np.int64)}
            )
        )
    if not parts:
        return pd.DataFrame({"after_ns": at[:0], "category": "", "size_bytes": at[:0]})
    return pd.concat(parts, ignore_index=True)
