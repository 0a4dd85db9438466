"""What the host was in, as one tree merged by call path, over any part of the time."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._call_sites import is_user_code
from maiprof_nb.analysis._host_calls import host_calls, sampled_recordings
from maiprof_nb.analysis._innermost import innermost
from maiprof_nb.analysis._intervals import Union, clip, overlap
from maiprof_nb.analysis._nesting import depths, sum_into_ancestors
from maiprof_nb.analysis._remember import remembered
from maiprof_nb.analysis.python_in_gaps import all_idle
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow

Ints = npt.NDArray[np.int64]

MIN_SHARE, MAX_NODES = 0.002, 3000
ROLES = (
    "threads that launch device work",
    "other threads",
    "sampled threads",
)
_LAUNCHING, _OTHER, _SAMPLED = range(len(ROLES))


@dataclass(frozen=True)
class Icicle:
    """Host time merged by call path.

    Parameters
    ----------
    nodes : DataFrame
        One row a call path, callers before callees, the largest first among siblings (the
        groups of threads at the top in the order of `ROLES`):
        ``node`` (row number), ``parent`` (-1 for the groups of threads at the top), ``depth``,
        ``name``, ``kind`` (threads, python, operator, range, launch), ``own`` (a Python
        function of neither a library nor C), ``total_ns``, ``self_ns``, ``pruned_ns`` (callees
        too small to have a row), ``threads`` (how many threads were in it) and ``calls`` (calls
        that touch the time looked at). The self time, the pruned time and the totals of the
        callees in the table sum to ``total_ns`` exactly.
    within_ns : int
        Length of the time looked at, in ns.
    total_ns : int
        Recorded host time in it, summed over threads: may be more than `within_ns`.
    dropped : int
        Call paths that are too small to have a row.
    """

    nodes: pd.DataFrame
    within_ns: int
    total_ns: int
    dropped: int


@dataclass(frozen=True)
class _Tree:
    """All call paths of a session, and which of them each stretch of a thread's time is in."""

    parent: Ints
    name: Ints
    kind: Ints
    names: npt.NDArray[np.object_]
    kinds: tuple[str, ...]
    stretch_start: Ints
    stretch_end: Ints
    stretch_path: Ints
    call_start: Ints
    call_end: Ints
    call_path: Ints
    call_lane: Ints


def icicle(
    session: Session,
    *,
    window: TimeWindow | None = None,
    gaps_only: bool = True,
    min_share: float = MIN_SHARE,
    max_nodes: int = MAX_NODES,
) -> Icicle:
    """Merge Python frames, operators, ranges and runtime calls by who called whom.

    Parameters
    ----------
    session : Session
        Ranks that are selected count.
    window : TimeWindow, optional
        Part of the session to look at; all of it by default.
    gaps_only : bool
        Only the time in which every device is idle (within the window of the figures).
    min_share : float
        Call paths with less of the time than this (0 to 1) get no row.
    max_nodes : int
        At most so many rows, the largest.

    Raises
    ------
    NotAnswerableError
        If gaps are asked for and no device work was recorded.

    Notes
    -----
    Each moment of a thread counts for the innermost call it is in, so that no moment counts
    twice on one thread. What runs during a gap is not necessarily its cause.
    """
    within = _within(session, window, gaps_only=gaps_only)
    tree = _tree(session)
    spent = overlap(within, tree.stretch_start, tree.stretch_end)
    own = _sums(tree.stretch_path, spent, len(tree.parent))
    total = sum_into_ancestors(tree.parent, own)
    whole = int(total[tree.parent < 0].sum())
    kept = _kept(tree, total, max(min_share * whole, 1), max_nodes)
    nodes = _nodes(tree, own, total, kept, within)
    return Icicle(nodes, within.length_ns, whole, int((total > 0).sum()) - len(kept))


def _within(session: Session, window: TimeWindow | None, *, gaps_only: bool) -> Union:
    shown = session.window if window is None else window
    if gaps_only:
        return clip(all_idle(session), shown.start_ns, shown.end_ns)
    at = np.array([[shown.start_ns], [shown.end_ns]], dtype=np.int64)
    return Union(at[0], at[1]) if shown.dur_ns else Union(at[0][:0], at[1][:0])


def _kept(tree: _Tree, total: Ints, least_ns: float, count: int) -> Ints:
    """Paths to show, callers first and the largest first among siblings."""
    large = np.flatnonzero(total >= least_ns)
    depth = depths(tree.parent)
    # a caller is no smaller than its callees, so cutting by size never cuts a caller off
    largest = large[np.lexsort((depth[large], -total[large]))][:count]
    rank = np.where(tree.parent[largest] < 0, largest, -total[largest])  # roles as they are named
    return largest[np.lexsort((rank, depth[largest]))]


def _nodes(tree: _Tree, own: Ints, total: Ints, kept: Ints, within: Union) -> pd.DataFrame:
    row = np.full(len(tree.parent) + 1, -1, dtype=np.int64)
    row[kept] = np.arange(len(kept))
    parent = row[tree.parent[kept]]  # the last place, for no caller, stays -1
    callees = _sums(parent[parent >= 0], total[kept][parent >= 0], len(kept))
    touched = overlap(within, tree.call_start, tree.call_end) > 0
    path, lane = tree.call_path[touched], tree.call_lane[touched]
    calls = np.bincount(path, minlength=len(tree.parent))
    pairs = np.unique(np.stack((path, lane)), axis=1)[0]
    threads = np.bincount(pairs, minlength=len(tree.parent))
    roots = tree.parent < 0
    on = pd.DataFrame({"role": _root_of(tree.parent, path), "lane": lane}).drop_duplicates()
    threads[roots] = np.bincount(on["role"], minlength=len(tree.parent))[roots]
    kinds = np.array(tree.kinds, dtype=object)[tree.kind[kept]]
    names = pd.Series(tree.names[tree.name[kept]], dtype="str")
    return pd.DataFrame(
        {
            "node": np.arange(len(kept)),
            "parent": parent,
            "depth": depths(parent),
            "name": names,
            "kind": kinds,
            "own": (kinds == "python") & is_user_code(names),
            "total_ns": total[kept],
            "self_ns": own[kept],
            "pruned_ns": total[kept] - own[kept] - callees,
            "threads": threads[kept],
            "calls": calls[kept],
        }
    )


def _root_of(parent: Ints, path: Ints) -> Ints:
    found = path.copy()
    while (has := parent[found] >= 0).any():
        found[has] = parent[found[has]]
    return found


def _sums(groups: Ints, values: Ints, count: int) -> Ints:
    total = np.zeros(count, dtype=np.int64)
    np.add.at(total, groups, values)
    return total


@remembered
def _tree(session: Session) -> _Tree:
    calls = host_calls(session)
    lane, start, parent = (calls[one].to_numpy(np.int64) for one in ("lane", "ts_ns", "parent"))
    end = start + calls["dur_ns"].to_numpy(np.int64)
    names, texts = pd.factorize(calls["name"])
    kinds, kind_texts = pd.factorize(calls["kind"])
    role = _roles(session, calls, lane)
    path, tree_parent, of = _paths(parent, names, kinds, role)
    pieces = innermost(session)
    roles, others = len(ROLES), of[len(ROLES) :]
    every_name: list[Any] = [*ROLES, *texts.tolist()]
    return _Tree(
        parent=tree_parent,
        name=np.concatenate((np.arange(roles), names[others] + roles)).astype(np.int64),
        kind=np.concatenate((np.zeros(roles), kinds[others] + 1)).astype(np.int64),
        names=np.array(every_name, dtype=object),
        kinds=("threads", *kind_texts.tolist()),
        stretch_start=pieces.start_ns,
        stretch_end=pieces.end_ns,
        stretch_path=path[pieces.call],
        call_start=start,
        call_end=end,
        call_path=path,
        call_lane=lane,
    )


def _roles(session: Session, calls: pd.DataFrame, lane: Ints) -> Ints:
    launching = np.isin(lane, lane[(calls["kind"] == "launch").to_numpy()])
    sampled = calls["recording"].isin(sampled_recordings(session)).to_numpy()
    return np.where(sampled, _SAMPLED, np.where(launching, _LAUNCHING, _OTHER)).astype(np.int64)


def _paths(parent: Ints, name: Ints, kind: Ints, role: Ints) -> tuple[Ints, Ints, Ints]:
    """Path of each call, caller of each path, and a call that has each path.

    The first paths are the roles; a path is a path's name and kind under another path.
    """
    path = np.full(len(parent), -1, dtype=np.int64)
    callers = [np.full(len(ROLES), -1, dtype=np.int64)]
    examples = [np.full(len(ROLES), -1, dtype=np.int64)]
    made, depth = len(ROLES), depths(parent)
    by_depth = np.argsort(depth, kind="stable")
    edges = np.concatenate(([0], np.cumsum(np.bincount(depth, minlength=1)))).astype(np.int64)
    for first, last in pairwise(edges.tolist()):  # a pass a level, not a call
        here = by_depth[first:last]
        above = np.where(parent[here] >= 0, path[parent[here]], role[here])
        keys = pd.DataFrame({"above": above, "name": name[here], "kind": kind[here]})
        number = keys.groupby(["above", "name", "kind"], sort=False).ngroup().to_numpy(np.int64)
        path[here] = made + number
        _, example = np.unique(number, return_index=True)
        callers.append(above[example])
        examples.append(here[example])
        made += len(example)
    return path, np.concatenate(callers), np.concatenate(examples)
