"""When host threads are inside recorded events."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maiprof_nb.analysis._intervals import Union, union
from maiprof_nb.analysis._remember import remembered
from maiprof_nb.session import Session

_FRAMEWORK = ("operators", "launches")
_ANYTHING = (*_FRAMEWORK, "annotations", "python_calls")


@dataclass(frozen=True)
class HostThread:
    """One thread that recorded anything, as unions of intervals in ns of the session.

    ``framework`` is time inside operators and launch calls, ``recorded`` inside any event
    (also Python functions and named ranges, but not the marks of steps).
    """

    recording: int
    rank: int | None
    pid: str
    tid: str
    framework: Union
    recorded: Union


@remembered
def host_threads(session: Session) -> list[HostThread]:
    """Every host thread with recorded events, busiest in the framework first."""
    framework = _unions(session, _FRAMEWORK)
    recorded = _unions(session, _ANYTHING)
    nothing = union(np.empty(0, np.int64), np.empty(0, np.int64))
    found = [
        HostThread(
            key[0],
            session.recordings[key[0]].rank,
            key[1],
            key[2],
            framework.get(key, nothing),
            busy,
        )
        for key, busy in recorded.items()
    ]
    return sorted(found, key=lambda thread: -thread.framework.length_ns)


def _unions(session: Session, tables: tuple[str, ...]) -> dict[tuple[int, str, str], Union]:
    starts: dict[tuple[int, str, str], list[np.ndarray]] = {}
    ends: dict[tuple[int, str, str], list[np.ndarray]] = {}
    for name in tables:
        table = session.table(name)
        if name == "annotations":
            table = table[~table["name"].astype("str").str.startswith("ProfilerStep#")]
        for (recording, pid, tid), rows in table.groupby(
            ["recording", "pid", "tid"], observed=True
        ):
            key = (int(recording), str(pid), str(tid))
            begin = rows["ts_ns"].to_numpy(np.int64)
            starts.setdefault(key, []).append(begin)
            ends.setdefault(key, []).append(begin + rows["dur_ns"].to_numpy(np.int64))
    return {key: union(np.concatenate(starts[key]), np.concatenate(ends[key])) for key in starts}
