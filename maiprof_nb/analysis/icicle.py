"""What the host was in, as one tree merged by call path, over any part of the time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._call_paths import CallPaths, call_paths
from maiprof_nb.analysis._call_sites import is_user_code
from maiprof_nb.analysis._intervals import Union, clip, overlap
from maiprof_nb.analysis._nesting import depths, nearest_code, sum_into_ancestors
from maiprof_nb.analysis.python_in_gaps import all_idle
from maiprof_nb.errors import UsageError
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow

Ints = npt.NDArray[np.int64]

MIN_SHARE, MAX_NODES = 0.002, 3000


@dataclass(frozen=True)
class Icicle:
    """Host time merged by call path.

    Parameters
    ----------
    nodes : DataFrame
        One row a call path, callers before callees, the largest first among siblings (the
        groups of threads at the top: those that launch device work, others, sampled ones):
        ``node`` (row number), ``path`` (number of the call path, the same for a session at every
        window), ``parent`` (a row; -1 at the top), ``depth``, ``name``, ``kind`` (threads,
        forward, python, operator, range, launch), ``own`` (a Python function of neither a
        library nor C), ``total_ns``, ``self_ns``, ``pruned_ns`` (callees too small to have a
        row), ``pruned`` (how many), ``threads`` (how many threads were in it) and ``calls``
        (calls that touch the time looked at). The self time, the pruned time and the totals of
        the callees in the table sum to ``total_ns`` exactly. A row of kind forward is the line
        of the user's code whose forward made the part of the backward pass under it.
    within_ns : int
        Length of the time looked at, in ns.
    total_ns : int
        Recorded host time in it (and in the path looked into), summed over threads: may be more
        than `within_ns`.
    dropped : int
        Call paths that are too small to have a row.
    """

    nodes: pd.DataFrame
    within_ns: int
    total_ns: int
    dropped: int


def icicle(
    session: Session,
    *,
    window: TimeWindow | None = None,
    gaps_only: bool = True,
    under: int | None = None,
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
    under : int, optional
        Only this call path (see `Icicle.nodes`) and what it calls, down to finer ones.
    min_share : float
        Call paths with less than this (0 to 1) of the time, or of that of `under`, get no row.
    max_nodes : int
        At most so many rows, the largest.

    Raises
    ------
    NotAnswerableError
        If gaps are asked for and no device work was recorded.
    UsageError
        If there is no such path.

    Notes
    -----
    Each moment of a thread counts for the innermost call it is in, so that no moment counts
    twice on one thread. What runs during a gap is not necessarily its cause. Of traces that
    keep stacks with their operators instead of Python calls, a frame has the time of those
    operators only, a lower bound: between two of them no frame is known.
    """
    within = _within(session, window, gaps_only=gaps_only)
    tree = call_paths(session)
    spent = overlap(within, tree.pieces.start_ns, tree.pieces.end_ns)
    own = _sums(tree.piece_path, spent, len(tree.parent))
    total = sum_into_ancestors(tree.parent, own)
    top = _top(tree, under)
    whole = int(total[top].sum())
    inside = nearest_code(np.where(top, 1, -1), tree.parent) > 0
    shown = np.where(inside, total, 0)
    kept = _kept(tree, shown, max(min_share * whole, 1), max_nodes)
    nodes = _nodes(tree, own, total, kept, within)
    return Icicle(nodes, within.length_ns, whole, int((shown > 0).sum()) - len(kept))


def _top(tree: CallPaths, under: int | None) -> npt.NDArray[np.bool_]:
    if under is None:
        return tree.parent < 0
    if not 0 <= under < len(tree.parent):
        raise UsageError(f"there is no call path {under}", remedy="Take it from `Icicle.nodes`")
    return np.arange(len(tree.parent)) == under


def _within(session: Session, window: TimeWindow | None, *, gaps_only: bool) -> Union:
    shown = session.window if window is None else window
    if gaps_only:
        return clip(all_idle(session), shown.start_ns, shown.end_ns)
    at = np.array([[shown.start_ns], [shown.end_ns]], dtype=np.int64)
    return Union(at[0], at[1]) if shown.dur_ns else Union(at[0][:0], at[1][:0])


def _kept(tree: CallPaths, total: Ints, least_ns: float, count: int) -> Ints:
    """Paths to show, callers first and the largest first among siblings."""
    large = np.flatnonzero(total >= least_ns)
    depth = depths(tree.parent)
    # a caller is no smaller than its callees, so cutting by size never cuts a caller off
    largest = large[np.lexsort((depth[large], -total[large]))][:count]
    rank = np.where(tree.parent[largest] < 0, largest, -total[largest])  # roles as they are named
    return largest[np.lexsort((rank, depth[largest]))]


def _nodes(tree: CallPaths, own: Ints, total: Ints, kept: Ints, within: Union) -> pd.DataFrame:
    row = np.full(len(tree.parent) + 1, -1, dtype=np.int64)
    row[kept] = np.arange(len(kept))
    parent = row[tree.parent[kept]]  # the last place, for no caller, stays -1
    callees = _sums(parent[parent >= 0], total[kept][parent >= 0], len(kept))
    small = np.setdiff1d(np.flatnonzero(total > 0), kept)
    pruned = np.bincount(tree.parent[small][tree.parent[small] >= 0], minlength=len(tree.parent))
    touched = overlap(within, tree.start_ns, tree.end_ns) > 0
    path, lane = tree.path[touched], tree.lane[touched]
    line = tree.parent[path]  # a line of the forward has the calls right under it
    of_line = tree.is_forward(line)
    path, lane = np.append(path, line[of_line]), np.append(lane, lane[of_line])
    calls = np.bincount(path, minlength=len(tree.parent))
    width = int(lane.max(initial=0)) + 1
    pairs = np.unique(path * width + lane) // width
    threads = np.bincount(pairs, minlength=len(tree.parent))
    roots = tree.parent < 0
    root = nearest_code(np.where(roots, np.arange(len(roots)), -1), tree.parent)[path]
    on = np.unique(root * width + lane) // width
    threads[roots] = np.bincount(on, minlength=len(roots))[roots]
    kinds = np.array(tree.kinds, dtype=object)[tree.kind[kept]]
    names = pd.Series(tree.names[tree.name[kept]], dtype="str")
    return pd.DataFrame(
        {
            "node": np.arange(len(kept)),
            "path": kept,
            "parent": parent,
            "depth": depths(parent),
            "name": names,
            "kind": kinds,
            "own": np.isin(kinds, ["python", "forward"]) & is_user_code(names),
            "total_ns": total[kept],
            "self_ns": own[kept],
            "pruned_ns": total[kept] - own[kept] - callees,
            "pruned": pruned[kept],
            "threads": threads[kept],
            "calls": calls[kept],
        }
    )


def _sums(groups: Ints, values: Ints, count: int) -> Ints:
    total = np.zeros(count, dtype=np.int64)
    np.add.at(total, groups, values)
    return total
