"""What the pieces of host time between the points of a schedule were spent on."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._intervals import Union, intersect, minus, overlap, union
from maiprof_nb.analysis._remember import remembered
from maiprof_nb.analysis._schedule_host import HostPoints
from maiprof_nb.analysis.phases import PHASES, phase_calls
from maiprof_nb.session import Session

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

PIECES = ("parallel input", "serial input", "optimizer", "framework", "rest")
PARALLEL, SERIAL, OPTIMIZER, FRAMEWORK, REST = range(len(PIECES))

# Frames a worker is in when it has nothing to do, and those that lie round its work.
_NOT_WORK = re.compile(
    r"_bootstrap|threading\.py|_worker\b|concurrent/futures|'acquire'|queue\.py|selectors?\.py"
    r"|\b(?:wait|poll|select|sleep|recv)\b"
)


def host_pieces(
    session: Session, recording: int, threads: pd.DataFrame, points: HostPoints, start_ns: int
) -> Floats:
    """Host time before each point, one column for each of ``PIECES``.

    Notes
    -----
    Input is time the loop's thread spends in data loading, parallel while a worker thread
    works (or may, where the workers are other processes). Optimizer and framework are time
    any thread of the loop is inside the optimizer, or inside an operator or a runtime call.
    """
    calls = phase_calls(session)
    calls = calls[calls["recording"] == recording]
    names = threads["pid"].astype("str") + "/" + threads["tid"].astype("str")
    of_loop = calls[np.isin(_threads(calls), names.tolist())]
    loading = loading_of(session, recording, names.iloc[points.main])
    busy = parallel_part(session, recording, loading)
    optimizer = minus(_union(of_loop[of_loop["phase"] == PHASES.index("optimizer")]), loading)
    in_framework = _union(of_loop[of_loop["kind"].isin(["operators", "launches"])])
    framework = minus(minus(in_framework, loading), optimizer)
    follows = points.before
    begin = np.where(follows >= 0, points.out_ns[np.maximum(follows, 0)], start_ns)
    end = np.maximum(points.in_ns, begin)
    parts = [overlap(one, begin, end) for one in (busy, minus(loading, busy), optimizer, framework)]
    rest = end - begin - np.sum(parts, axis=0)
    return np.stack([*parts, np.maximum(rest, 0)], axis=1).astype(np.float64)


def loading_of(session: Session, recording: int, thread: str) -> Union:
    """When a thread (``pid/tid``) is in data loading."""
    calls = phase_calls(session)
    calls = calls[
        (calls["recording"] == recording) & (calls["phase"] == PHASES.index("data loading"))
    ]
    return _union(calls[_threads(calls) == thread])


def parallel_part(session: Session, recording: int, loading: Union) -> Union:
    """The part of loading in which a worker works, or all of it where none is recorded."""
    busy = list(worker_busy(session, recording, loading).values())
    if not busy:
        return loading
    return intersect(
        loading,
        union(
            np.concatenate([one.start_ns for one in busy]),
            np.concatenate([one.end_ns for one in busy]),
        ),
    )


def worker_busy(session: Session, recording: int, loading: Union) -> dict[str, Union]:
    """Threads that only run Python and work during loading, each with when it worked."""
    if len(loading.start_ns) == 0:
        return {}
    workers = _workers(session).get(recording, {})
    found = {thread: intersect(busy, loading) for thread, busy in workers.items()}
    return {thread: busy for thread, busy in found.items() if busy.length_ns}


@remembered
def _workers(session: Session) -> dict[int, dict[str, Union]]:
    """Threads (``pid/tid``) of each recording that only run Python, each with when it works."""
    thread = ["recording", "pid", "tid"]
    framework = [
        session.table(table)[thread].drop_duplicates().astype({"pid": "str", "tid": "str"})
        for table in ("operators", "launches", "steps")
    ]
    busy = pd.concat(framework).drop_duplicates()
    python = session.table("python_calls")
    lanes = python[thread].drop_duplicates().astype({"pid": "str", "tid": "str"})
    idle = lanes.merge(busy, on=thread, how="left", indicator=True)["_merge"] == "left_only"
    alone = lanes.index[idle.to_numpy()]
    number = python.groupby(thread, observed=True, dropna=False).ngroup()
    waits = [bool(_NOT_WORK.search(text)) for text in python["name"].cat.categories]
    works = ~np.array([*waits, False], dtype=bool)[python["name"].cat.codes.to_numpy()]
    python = python[works & number.isin(number[alone]).to_numpy()]
    found: dict[int, dict[str, Union]] = {}
    for (recording, pid, tid), rows in python.groupby(thread, observed=True):
        found.setdefault(int(recording), {})[f"{pid}/{tid}"] = _union(rows)
    return found


def _threads(calls: pd.DataFrame) -> npt.NDArray[np.object_]:
    """``pid/tid`` of each call."""
    number = calls.groupby(["pid", "tid"], observed=True, dropna=False, sort=False).ngroup()
    first = calls.loc[~number.duplicated(), ["pid", "tid"]].astype("str")
    names = (first["pid"] + "/" + first["tid"]).to_numpy(object)
    return names[number.to_numpy()] if len(calls) else names


def _union(calls: pd.DataFrame) -> Union:
    start = calls["ts_ns"].to_numpy(np.int64)
    return union(start, start + calls["dur_ns"].to_numpy(np.int64))
