"""Bytes merged by stack, as one tree: callers above callees."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from maiprof_nb.analysis._call_sites import is_user_code
from maiprof_nb.analysis._nesting import depths
from maiprof_nb.analysis.memory_peak import MemoryPeak
from maiprof_nb.analysis.native_names import spoken
from maiprof_nb.errors import UsageError

MIN_SHARE, MAX_NODES = 0.002, 3000
UNKNOWN = "no stack recorded"
_PYTHON = re.compile(r"^(?P<name>.+) \((?P<file>.+\.py):(?P<line>\d+)\)$")
_TRACED = re.compile(r"\(\d+\): |^nn\.Module: ")  # a Python call as traces name it
_OPERATOR = re.compile(r"^\w+::\w+$")


@dataclass
class _Node:
    """A call path and what was allocated in it."""

    name: str
    kind: str
    parent: int
    own_bytes: int = 0
    blocks: int = 0
    largest: tuple[int, int] = (0, -1)  # bytes and row id of its largest stack
    callees: dict[tuple[str, str], int] = field(default_factory=dict)


def memory_flame(
    peak: MemoryPeak,
    *,
    min_share: float = MIN_SHARE,
    max_nodes: int = MAX_NODES,
    under: int = 0,
) -> pd.DataFrame:
    """What was live at a moment, merged by call path.

    Parameters
    ----------
    peak : MemoryPeak
        The moment.
    min_share : float
        Call paths with less of the bytes than this (0 to 1) get no row.
    max_nodes : int
        At most so many rows, the largest.
    under : int
        Only this call path (a ``path`` of an earlier answer) and what it calls, down to finer
        ones; `min_share` is of its bytes then.

    Returns
    -------
    DataFrame
        One row a call path, callers before callees, the largest first among siblings:
        ``node, path`` (number of the call path, the same at every `under`), ``parent`` (-1 for
        the outermost row), ``depth, name, kind`` (all, python, operator, native), ``own`` (Python
        code of no library), ``size_bytes`` (with callees), ``self_bytes, pruned_bytes`` (callees
        too small for a row), ``pruned`` (how many), ``blocks`` and ``stack``, the stack with most
        bytes in it (-1 = none).

    Raises
    ------
    UsageError
        If there is no such path.

    Notes
    -----
    Native frames are left out of stacks that have Python frames: they are the allocator, the
    dispatcher and the interpreter. Backward passes run by the autograd engine have only native
    frames, and keep those from the one that says most outwards.
    """
    stacks = peak.log.stacks.astype(object)
    held = _held(peak)
    nodes = [_Node("everything live", "all", -1)]
    # all stacks of the log, so that a call path has one number at every moment
    _add(nodes, [(UNKNOWN, "native")], (-1, *held.get(-1, (0, 0))))
    for stack, frames, label in stacks[["stack", "frames", "label"]].itertuples(index=False):
        path = _path(str(frames).splitlines(), str(label))
        _add(nodes, path, (int(stack), *held.get(int(stack), (0, 0))))
    if peak.unnamed_bytes:
        _add(nodes, [("allocated before the recording", "native")], (-1, peak.unnamed_bytes, 0))
    if not 0 <= under < len(nodes):
        raise UsageError(f"there is no call path {under}", remedy="Take it from an earlier answer")
    return _table(nodes, min_share, max_nodes, under)


def _held(peak: MemoryPeak) -> dict[int, tuple[int, int]]:
    """Bytes and blocks live of each stack; -1 of none that is known."""
    stack = peak.live["stack"].astype("Int64")
    stack = stack.where(stack.isin(peak.log.stacks["stack"])).fillna(-1).astype("int64")
    sums = peak.live.groupby(stack)["size_bytes"].agg(["sum", "size"])
    return {int(row): (int(total), int(blocks)) for row, total, blocks in sums.itertuples()}


def frame_name(text: str) -> str:
    """A frame of a snapshot's stack as traces name it, e.g. ``train.py(9): main``."""
    found = _PYTHON.match(text)
    if found:
        return f"{found['file']}({found['line']}): {found['name']}"
    return spoken(text).removesuffix(" (??:0)")


def _path(frames: list[str], label: str) -> list[tuple[str, str]]:
    """Names and kinds from the outermost frame; Python frames as traces name them."""
    told = [(frame_name(text), _kind(text)) for text in reversed(frames)]
    python = [one for one in told if one[1] != "native"]
    if python or not told:
        return python or [(UNKNOWN, "native")]
    inner = frames.index(label) if label in frames else 0  # below the label: the allocator
    return told[: len(told) - inner]


def _kind(text: str) -> str:
    if _PYTHON.match(text) or _TRACED.search(text):
        return "python"
    return "operator" if _OPERATOR.match(text) else "native"


def _add(nodes: list[_Node], path: list[tuple[str, str]], held: tuple[int, int, int]) -> None:
    stack, size_bytes, blocks = held
    at = 0
    for key in [None, *path]:
        if key is not None:
            callees = nodes[at].callees
            if key not in callees:
                callees[key] = len(nodes)
                nodes.append(_Node(*key, at))
            at = callees[key]
        node = nodes[at]
        node.blocks += blocks
        node.largest = max(node.largest, (size_bytes, stack if size_bytes else -1))
    nodes[at].own_bytes += size_bytes


def _table(nodes: list[_Node], min_share: float, max_nodes: int, under: int) -> pd.DataFrame:
    parent = np.array([node.parent for node in nodes], dtype=np.int64)
    own = np.array([node.own_bytes for node in nodes], dtype=np.int64)
    total = own.copy()
    for row in range(len(nodes) - 1, 0, -1):  # a caller is always made before its callees
        total[parent[row]] += total[row]
    depth = depths(parent)
    inside = np.arange(len(nodes)) == under
    for row in range(under + 1, len(nodes)):
        inside[row] = inside[parent[row]]
    large = np.flatnonzero(inside & (total >= max(min_share * total[under], 1)))
    largest = large[np.lexsort((depth[large], -total[large]))][:max_nodes]
    kept = largest[np.lexsort((-total[largest], depth[largest]))]
    row_of = np.full(len(nodes) + 1, -1, dtype=np.int64)
    row_of[kept] = np.arange(len(kept))
    above = row_of[parent[kept]]
    small = np.setdiff1d(np.arange(1, len(nodes)), kept)
    pruned = np.bincount(parent[small], minlength=len(nodes))
    shown = np.zeros(len(kept), dtype=np.int64)
    np.add.at(shown, above[above >= 0], total[kept][above >= 0])
    chosen = [nodes[row] for row in kept]
    names = pd.Series([node.name for node in chosen], dtype="str")
    kinds = np.array([node.kind for node in chosen], dtype=object)
    return pd.DataFrame(
        {
            "node": np.arange(len(kept)),
            "path": kept,
            "parent": above,
            "depth": depth[kept],
            "name": names,
            "kind": kinds,
            "own": (kinds == "python") & is_user_code(names),
            "size_bytes": total[kept],
            "self_bytes": own[kept],
            "pruned_bytes": total[kept] - own[kept] - shown,
            "pruned": pruned[kept],
            "blocks": [node.blocks for node in chosen],
            "stack": [node.largest[1] for node in chosen],
        }
    )
