"""Why a device had nothing to do: what the host did during each gap."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._call_origins import OF_CALL, OF_FORWARD, users_around
from maiprof_nb.analysis._compilation import COMPILING, LOADING_CODE
from maiprof_nb.analysis._garbage import COLLECTION
from maiprof_nb.analysis._host_calls import host_calls
from maiprof_nb.analysis._innermost import innermost
from maiprof_nb.analysis._intervals import union_of
from maiprof_nb.analysis._nesting import nearest_code
from maiprof_nb.analysis._remember import remembered
from maiprof_nb.analysis._sampled_thread import open_time, sampled_lane
from maiprof_nb.analysis.device_activity import gaps
from maiprof_nb.session import Session

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

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
WHOSE = (OF_CALL, OF_FORWARD, "launch")
_OF_CALL, _OF_FORWARD, _OF_LAUNCH = range(len(WHOSE))
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
    ("compilation", COMPILING),
    ("compilation", LOADING_CODE),
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
        recorded), ``user_line`` (the same of the user's own functions, with what they call in
        libraries) and ``line_of`` (whose that line is: call; forward where the thread ran the
        backward pass and the line is that of the forward operator; launch where the host was in
        nobody's line during the gap, and it is that of the launch which ends it).

    Raises
    ------
    NotAnswerableError
        If no device work was recorded.

    Notes
    -----
    Where a sampler of stacks (py-spy) ran beside a trace without Python calls, its training
    thread answers for the time in which the trace's says nothing.

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
    start = found["ts_ns"].to_numpy(np.int64)
    end = start + found["dur_ns"].to_numpy(np.int64)
    parts = np.zeros((len(found), len(CAUSES)), dtype=np.int64)
    after_sync = np.zeros(len(found), dtype=bool)
    line = np.full(len(found), -1, dtype=np.int64)
    user_line, line_of = line.copy(), line.copy()
    calls = _calls(session)
    users = users_around(calls)
    python = (calls["kind"] == "python").to_numpy()
    function = nearest_code(np.where(python, np.arange(len(calls)), -1), calls["parent"].to_numpy())
    names = calls["name"].cat
    cause, name = calls["cause"].to_numpy(), np.append(names.codes.to_numpy(np.int64), -1)
    thread = _lane_of_each(found, calls)
    pieces, sampled = innermost(session), sampled_lane(session, calls)
    for lane in np.unique(thread[thread >= 0]):  # a pass a thread, not a gap
        mine = np.flatnonzero(thread == lane)
        gap, call, spent = pieces.of(lane).within(start[mine], end[mine])
        if sampled is not None:  # for what the trace leaves open
            which, begin, until = open_time(pieces.of(lane), start[mine], end[mine])
            hole, seen, length = pieces.of(sampled).within(begin, until)
            gap, call = np.append(gap, which[hole]), np.append(call, seen)
            spent = np.append(spent, length)
        np.add.at(parts, (mine[gap], cause[call]), spent)
        after_sync[mine] = _began_waiting(calls[calls["lane"] == lane], start[mine])
        line[mine] = _most(gap, name[function[call]], spent, len(mine))
        whose = np.where(users.of_forward, _OF_FORWARD, _OF_CALL)[call]
        told = np.where(users.row[call] >= 0, len(WHOSE) * name[users.row[call]] + whose, -1)
        best = _most(gap, told, spent, len(mine))
        user_line[mine], line_of[mine] = best // len(WHOSE), best % len(WHOSE)
    queued = (work["launched_ns"].fillna(np.iinfo(np.int64).max) <= start).to_numpy(bool)
    parts[queued] = 0
    parts[queued, _LAUNCHED] = end[queued] - start[queued]
    line[queued], user_line[queued], after_sync[queued] = -1, -1, False
    by_launch = np.append(users.row, -1)[_row_of_launch(found, work["event"], calls)]
    user_line, line_of = np.where(
        user_line >= 0, (user_line, line_of), (name[by_launch], np.full_like(line, _OF_LAUNCH))
    )
    parts[:, _UNRECORDED] = found["dur_ns"].to_numpy(np.int64) - parts[:, :_UNRECORDED].sum(axis=1)
    parts[after_sync, _SYNCHRONISATION] += parts[after_sync, _FRAMEWORK]
    parts[after_sync, _FRAMEWORK] = 0
    largest = parts.argmax(axis=1)
    share = parts[np.arange(len(parts)), largest] / np.maximum(end - start, 1)
    titles = np.array(CAUSES, dtype=object)[largest]
    texts = np.array([*names.categories, None], dtype=object)
    columns = {cause_column(cause): parts[:, i] for i, cause in enumerate(CAUSES)}
    return found.assign(
        cause=np.where(share < MIXED_BELOW, "mixed", titles),
        share=share,
        **columns,
        after_sync=after_sync,
        line=texts[line],
        user_line=texts[user_line],
        line_of=np.array([*WHOSE, None], dtype=object)[np.where(user_line < 0, -1, line_of)],
    )


def cause_column(cause: str) -> str:
    """The column of `gap_causes` with the time spent so."""
    return f"{cause.replace(' ', '_').replace('-', '_')}_ns"


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
            spent = int(mine[cause_column(cause)].sum())
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
    """The launch of the work which ends each gap: its event, its thread, and when it was over."""
    work = session.table("kernels")[["recording", "device", "ts_ns", "correlation"]]
    launches = session.table("launches")
    launches = launches.assign(launched_ns=launches["ts_ns"] + launches["dur_ns"])
    launches = launches[["recording", "event", "correlation", "pid", "tid", "launched_ns"]]
    launches = launches[launches["correlation"].notna()].drop_duplicates(
        ["recording", "correlation"]
    )
    ends = found[["recording", "device"]].assign(
        ts_ns=found["ts_ns"] + found["dur_ns"], row=found.index
    )
    first = work.drop_duplicates(["recording", "device", "ts_ns"])
    tied = ends.merge(first, on=["recording", "device", "ts_ns"], how="left")
    tied = tied.merge(launches, on=["recording", "correlation"], how="left")
    return tied.set_index("row")[["event", "pid", "tid", "launched_ns"]].reindex(found.index)


def _calls(session: Session) -> pd.DataFrame:
    """Host calls with what they are, as a code into CAUSES."""
    calls = host_calls(session)
    parent = calls["parent"].to_numpy(np.int64)
    cause = nearest_code(_named(calls["name"]), parent)
    framework = calls["kind"].isin(["operator", "launch"]).to_numpy()
    inside_framework = nearest_code(np.where(framework, _FRAMEWORK, -1), parent) >= 0
    plain = np.where(inside_framework, _FRAMEWORK, _PYTHON)
    return calls.assign(cause=np.where(cause >= 0, cause, plain))


def _named(names: pd.Series) -> Ints:
    of_text = [
        next((CAUSES.index(cause) for cause, rule in _RULES if rule.search(text)), -1)
        for text in names.cat.categories
    ]
    return np.array([*of_text, -1], dtype=np.int64)[names.cat.codes.to_numpy()]


def _lane_of_each(found: pd.DataFrame, calls: pd.DataFrame) -> Ints:
    """Number of the thread that launched the work which ends each gap; -1 if unrecorded."""
    thread = ["recording", "pid", "tid"]
    text = {"pid": "str", "tid": "str"}
    known = calls[[*thread, "lane"]].drop_duplicates("lane").astype(text)
    tied = found[thread].astype(text).merge(known, on=thread, how="left")
    return tied["lane"].fillna(-1).to_numpy(np.int64)


def _row_of_launch(found: pd.DataFrame, event: pd.Series, calls: pd.DataFrame) -> Ints:
    """Row in `calls` of the launch of the work which ends each gap, or -1."""
    launches = calls.loc[calls["kind"] == "launch", ["recording", "event"]]
    keys = found[["recording"]].assign(event=event.to_numpy())
    tied = keys.merge(launches.assign(row=launches.index), on=["recording", "event"], how="left")
    return tied["row"].fillna(-1).to_numpy(np.int64)


def _began_waiting(rows: pd.DataFrame, start: Ints) -> Bools:
    """Whether the thread was in a wait for the device when each gap began."""
    waits = union_of(rows[rows["cause"] == _SYNCHRONISATION])
    index = np.searchsorted(waits.start_ns, start, side="right") - 1
    if len(waits.start_ns) == 0:
        return np.zeros(len(start), dtype=bool)
    return (index >= 0) & (waits.end_ns[np.maximum(index, 0)] >= start)


def _most(gap: Ints, code: Ints, spent: Ints, count: int) -> Ints:
    """For each of `count` gaps the code with most time in it; -1 where no piece has one."""
    found = np.full(count, -1, dtype=np.int64)
    coded = code >= 0
    sums = pd.Series(spent[coded]).groupby([gap[coded], code[coded]]).sum()
    if len(sums):
        best = pd.DataFrame(list(sums.groupby(level=0).idxmax()), columns=["gap", "code"])
        found[best["gap"]] = best["code"]
    return found
