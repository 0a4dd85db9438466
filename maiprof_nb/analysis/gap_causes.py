"""Why a device had nothing to do: what the host did during each gap."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._call_sites import is_user_code
from maiprof_nb.analysis._garbage import COLLECTION
from maiprof_nb.analysis._intervals import Union, minus, overlap, union, union_of
from maiprof_nb.analysis._nesting import nearest_code, parents
from maiprof_nb.analysis._remember import remembered
from maiprof_nb.analysis.device_activity import gaps
from maiprof_nb.session import Session

Ints = npt.NDArray[np.int64]

CAUSES = (
    "input",
    "synchronisation",
    "allocator",
    "collective wait",
    "compilation",
    "garbage collection",
    "launch-bound",
    "Python",
    "already launched",
    "unrecorded",
)
MIXED_BELOW = 0.5
_FRAMEWORK, _PYTHON, _LAUNCHED, _UNRECORDED = (
    CAUSES.index(cause) for cause in ("launch-bound", "Python", "already launched", "unrecorded")
)
_SYNCHRONISATION = CAUSES.index("synchronisation")

# Names that say what a call and everything inside it is; the first that matches wins.
_RULES: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "input",
        re.compile(
            r"enumerate\(DataLoader\)|utils/data/|data_?loader|iterrows|next_batch|prefetch|collate",
            re.IGNORECASE,
        ),
    ),
    ("garbage collection", COLLECTION),
    (
        "compilation",
        re.compile(
            r"TorchDynamo|CompileTimeInstructionCounter|torch/_(?:dynamo|inductor)/|triton/(?:compiler|runtime/jit)"
            r"|AutotuneCache|compile_fx|nvrtc|cuModuleLoad|hipModuleLoad",
            re.IGNORECASE,
        ),
    ),
    (
        "collective wait",
        re.compile(
            r"^nccl:|^gloo:|^c10d::|record_param_comms|Work\.wait|dist_backend", re.IGNORECASE
        ),
    ),
    (
        "allocator",
        re.compile(
            r"(?:cuda|hip)(?:Malloc|Free|HostAlloc|HostRegister|HostUnregister|MemUnmap|MemMap|MemCreate)"
        ),
    ),
    (
        "synchronisation",
        re.compile(
            r"(?:cuda|hip)(?:Stream|Device|Event)Synchronize|(?:cuda|hip)Memcpy(?!Async)"
            r"|aten::item|aten::_local_scalar_dense|aten::is_nonzero|aten::nonzero"
        ),
    ),
)


@remembered
def gap_causes(session: Session) -> pd.DataFrame:
    """Every gap of every device with its cause.

    Returns
    -------
    DataFrame
        The rows of `gaps` (longest first) with ``pid`` and ``tid`` of the host thread that
        launched the work which ends the gap (missing if that is not recorded), ``cause``
        (the one with the largest share, or ``mixed`` if that is below one half),
        ``share``, one column ``<cause>_ns`` for each of ``CAUSES`` (they sum to
        ``dur_ns``), ``after_sync`` (the gap began while that thread waited for the device)
        ``line`` (the innermost Python function with most time in the gap, if stacks were
        recorded) and ``user_line`` (the same of the user's own functions, with what they call in
        libraries).

    Raises
    ------
    NotAnswerableError
        If no device work was recorded.

    Notes
    -----
    Each moment counts for the innermost named call the thread is in: data loading, a wait
    for the device, the allocator, a collective, compilation; else for the framework
    (launch-bound), for Python, or as unrecorded. A gap whose next work was already launched
    when it began is the device's own (a dependency between queues, the nodes of a graph): no
    host cause is looked for. The rest is what happened *during* the gap;
    only a wait that the gap began in is a cause in the strict sense, so framework time after
    one counts as synchronisation.
    """
    found = gaps(session)
    work = _launching_threads(session, found)
    found = found.assign(pid=work["pid"], tid=work["tid"])
    calls = _calls(session)
    parts = np.zeros((len(found), len(CAUSES)), dtype=np.int64)
    after_sync = np.zeros(len(found), dtype=bool)
    line = np.full(len(found), None, dtype=object)
    user_line = line.copy()
    start = found["ts_ns"].to_numpy(np.int64)
    end = start + found["dur_ns"].to_numpy(np.int64)
    keys = found[["recording", "pid", "tid"]]
    for key, rows in calls.groupby(["recording", "pid", "tid"], observed=True):
        mine = (
            (keys["recording"] == key[0]) & (keys["pid"] == key[1]) & (keys["tid"] == key[2])
        ).to_numpy()
        if not mine.any():
            continue
        for code, busy in _partition(rows).items():
            parts[mine, code] = overlap(busy, start[mine], end[mine])
        after_sync[mine] = _began_waiting(rows, start[mine])
        line[mine] = _lines(rows, start[mine], end[mine])
        users = _lines(rows.assign(name=rows["user"]), start[mine], end[mine])
        users[users == ""] = None
        user_line[mine] = users
    queued = (work["launched_ns"].fillna(np.iinfo(np.int64).max) <= start).to_numpy(bool)
    parts[queued] = 0
    parts[queued, _LAUNCHED] = end[queued] - start[queued]
    line[queued], after_sync[queued] = None, False
    parts[:, _UNRECORDED] = found["dur_ns"].to_numpy(np.int64) - parts[:, :_UNRECORDED].sum(axis=1)
    parts[after_sync, _SYNCHRONISATION] += parts[after_sync, _FRAMEWORK]
    parts[after_sync, _FRAMEWORK] = 0
    largest = parts.argmax(axis=1)
    share = parts[np.arange(len(parts)), largest] / np.maximum(end - start, 1)
    names = np.array(CAUSES, dtype=object)[largest]
    columns = {
        f"{cause.replace(' ', '_').replace('-', '_')}_ns": parts[:, i]
        for i, cause in enumerate(CAUSES)
    }
    return found.assign(
        cause=np.where(share < MIXED_BELOW, "mixed", names),
        share=share,
        **columns,
        after_sync=after_sync,
        line=line,
        user_line=user_line,
    )


def idle_by_cause(session: Session) -> pd.DataFrame:
    """Idle time by cause, over all gaps of a device.

    Returns
    -------
    DataFrame
        ``recording``, ``rank``, ``device``, ``cause``, ``idle_ns`` (time in gaps spent so),
        ``idle_share`` (of the device's gaps), ``gaps`` (gaps named after the cause),
        ``longest_ns`` (of those); largest first.

    Raises
    ------
    NotAnswerableError
        If no device work was recorded.
    """
    found = gap_causes(session)
    rows = []
    for (recording, device), mine in found.groupby(["recording", "device"], dropna=False):
        total = int(mine["dur_ns"].sum())
        for cause in CAUSES:
            spent = int(mine[f"{cause.replace(' ', '_').replace('-', '_')}_ns"].sum())
            named = mine[mine["cause"] == cause]
            if spent or len(named):
                rows.append(
                    {
                        "recording": recording,
                        "rank": mine["rank"].iloc[0],
                        "device": device,
                        "cause": cause,
                        "idle_ns": spent,
                        "idle_share": spent / max(total, 1),
                        "gaps": len(named),
                        "longest_ns": int(named["dur_ns"].max()) if len(named) else 0,
                    }
                )
    columns = [
        "recording",
        "rank",
        "device",
        "cause",
        "idle_ns",
        "idle_share",
        "gaps",
        "longest_ns",
    ]
    made = pd.DataFrame(rows, columns=columns)
    return made.sort_values("idle_ns", ascending=False, ignore_index=True)


def _launching_threads(session: Session, found: pd.DataFrame) -> pd.DataFrame:
    """Who launched the work which ends each gap, and when that launch call was over."""
    work = session.table("kernels")[["recording", "device", "ts_ns", "correlation"]]
    launches = session.table("launches")
    launches = launches.assign(launched_ns=launches["ts_ns"] + launches["dur_ns"])
    launches = launches[["recording", "correlation", "pid", "tid", "launched_ns"]]
    launches = launches[launches["correlation"].notna()].drop_duplicates(
        ["recording", "correlation"]
    )
    ends = found[["recording", "device"]].assign(
        ts_ns=found["ts_ns"] + found["dur_ns"], row=found.index
    )
    first = work.drop_duplicates(["recording", "device", "ts_ns"])
    tied = ends.merge(first, on=["recording", "device", "ts_ns"], how="left")
    tied = tied.merge(launches, on=["recording", "correlation"], how="left")
    return tied.set_index("row")[["pid", "tid", "launched_ns"]].reindex(found.index)


def _calls(session: Session) -> pd.DataFrame:
    """Host calls with what they are (a code into CAUSES) and what they lie in."""
    columns = ["recording", "name", "ts_ns", "dur_ns", "pid", "tid"]
    parts = []
    for table, code in (
        ("python_calls", _PYTHON),
        ("annotations", _PYTHON),
        ("operators", _FRAMEWORK),
        ("launches", _FRAMEWORK),
    ):
        part = session.table(table)[columns]
        if table == "annotations":
            part = part[~part["name"].astype("str").str.startswith("ProfilerStep#")]
        text = dict.fromkeys(("name", "pid", "tid"), "str")
        parts.append(part.astype(text).assign(plain=code, python=table == "python_calls"))
    calls = pd.concat(parts, ignore_index=True)
    by = calls.groupby(["recording", "pid", "tid"], observed=True, dropna=False)
    start = calls["ts_ns"].to_numpy(np.int64)
    parent = parents(
        by.ngroup().to_numpy(np.int64), start, start + calls["dur_ns"].to_numpy(np.int64)
    )
    own = _named(calls["name"])
    plain = calls["plain"].to_numpy(np.int64)
    cause = nearest_code(own, parent)
    inside_framework = nearest_code(np.where(plain == _FRAMEWORK, plain, -1), parent) >= 0
    cause = np.where(cause >= 0, cause, np.where(inside_framework, _FRAMEWORK, _PYTHON))
    around = np.where(parent >= 0, cause[parent], -1)
    users = calls["python"].to_numpy() & is_user_code(calls["name"])
    owner = nearest_code(np.where(users, np.arange(len(calls)), -1), parent)
    names = np.append(calls["name"].to_numpy(object), "")  # the last place: no user's function
    return calls.assign(cause=cause, around=around, parent=parent, user=names[owner])


def _named(names: pd.Series) -> Ints:
    codes, texts = pd.factorize(names)
    of_text = np.array(
        [
            next((CAUSES.index(cause) for cause, rule in _RULES if rule.search(text)), -1)
            for text in texts
        ],
        dtype=np.int64,
    )
    return of_text[codes] if len(texts) else np.empty(0, dtype=np.int64)


def _partition(rows: pd.DataFrame) -> dict[int, Union]:
    """Time of one thread by what it is in, innermost first; the parts do not overlap."""
    parts = {}
    taken = union(np.empty(0, np.int64), np.empty(0, np.int64))
    named = [code for code in range(len(CAUSES)) if code not in (_FRAMEWORK, _PYTHON, _LAUNCHED)]
    for code in (*named, _FRAMEWORK, _PYTHON):
        mine = union_of(rows[rows["cause"] == code])
        left = union_of(rows[(rows["cause"] != code) & (rows["around"] == code)])
        parts[code] = minus(minus(mine, left), taken)
        taken = union(
            np.concatenate((taken.start_ns, parts[code].start_ns)),
            np.concatenate((taken.end_ns, parts[code].end_ns)),
        )
    return parts


def _began_waiting(rows: pd.DataFrame, start: Ints) -> npt.NDArray[np.bool_]:
    """Whether the thread was in a wait for the device when each gap began."""
    waits = union_of(rows[rows["cause"] == _SYNCHRONISATION])
    index = np.searchsorted(waits.start_ns, start, side="right") - 1
    if len(waits.start_ns) == 0:
        return np.zeros(len(start), dtype=bool)
    return (index >= 0) & (waits.end_ns[np.maximum(index, 0)] >= start)


def _lines(rows: pd.DataFrame, start: Ints, end: Ints) -> npt.NDArray[np.object_]:
    """The Python function with most own time in each gap, by the longest of its stretches.

    Stretches are the pieces of time in which one function is innermost; a function that is
    called a thousand times in a gap is found by the sum over its calls.
    """
    python = rows[rows["python"] & (rows["dur_ns"] > 0)]
    found = np.full(len(start), None, dtype=object)
    if python.empty or len(start) == 0:
        return found
    stretch = _stretches(python)
    first = np.searchsorted(stretch["end"], start, side="right")
    last = np.searchsorted(stretch["start"], end, side="left")
    counts = np.maximum(last - first, 0)
    gap = np.repeat(np.arange(len(start)), counts)
    offset = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    piece = np.repeat(first, counts) + offset
    spent = np.minimum(stretch["end"][piece], end[gap]) - np.maximum(
        stretch["start"][piece], start[gap]
    )
    sums = pd.Series(spent).groupby([gap, stretch["name"][piece]]).sum()
    best = sums.groupby(level=0).idxmax()
    names = stretch["names"]
    found[best.index.to_numpy()] = [names[name] for _, name in best]
    return found


def _stretches(python: pd.DataFrame) -> dict[str, npt.NDArray[np.int64]]:
    """Consecutive pieces of one thread's time with the innermost function of each."""
    start = python["ts_ns"].to_numpy(np.int64)
    end = start + python["dur_ns"].to_numpy(np.int64)
    names, texts = pd.factorize(python["name"])
    parent = parents(np.zeros(len(start), dtype=np.int64), start, end)
    times = np.concatenate((start, end))
    # After its start a call is innermost; after its end its caller is, or nothing (-1).
    inner = np.concatenate((np.arange(len(start)), parent))
    length = np.concatenate((end - start, end - start))
    is_end = np.concatenate((np.zeros(len(start)), np.ones(len(start))))
    # At one moment: ends first, inner ones before outer ones; then starts, outer ones first.
    # Of calls as long as one another the first is the outer one.
    place = np.concatenate((np.arange(len(start)), -np.arange(len(start))))
    order = np.lexsort((place, np.where(is_end == 1, length, -length), 1 - is_end, times))
    times, inner = times[order], inner[order]
    keep = (times[1:] > times[:-1]) & (inner[:-1] >= 0)
    of = inner[:-1][keep]
    return {
        "start": times[:-1][keep],
        "end": times[1:][keep],
        "name": names[of],
        "names": np.asarray(texts, dtype=object),
    }
