"""Every call path of a session, and which of them each stretch of a thread's time is in."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._call_origins import users_around
from maiprof_nb.analysis._host_calls import host_calls, sampled_recordings
from maiprof_nb.analysis._innermost import Stretches, innermost
from maiprof_nb.analysis._nesting import depths, nearest_code
from maiprof_nb.analysis._remember import remembered
from maiprof_nb.session import Session

Ints = npt.NDArray[np.int64]

ROLES = (
    "threads that launch device work",
    "other threads",
    "sampled threads",
)
THREADS, FORWARD = "threads", "forward"
_LAUNCHING, _OTHER, _SAMPLED = range(len(ROLES))


@dataclass(frozen=True)
class CallPaths:
    """A path is a name and kind under another path; the first ones are the `ROLES`.

    Attributes
    ----------
    parent, name, kind : ndarray of int64
        For each path: its caller's path (-1 for the roles), and codes into `names` and `kinds`.
    names, kinds : ndarray, tuple
        Texts.
    pieces : Stretches
        Stretches of the threads' time; `piece_path` is the path of each.
    start_ns, end_ns, path, lane : ndarray of int64
        Of each call.
    """

    parent: Ints
    name: Ints
    kind: Ints
    names: npt.NDArray[np.object_]
    kinds: tuple[str, ...]
    pieces: Stretches
    piece_path: Ints
    start_ns: Ints
    end_ns: Ints
    path: Ints
    lane: Ints

    def is_forward(self, path: Ints) -> npt.NDArray[np.bool_]:
        """Whether a path is the line of the forward that a part of the backward pass is under."""
        return self.kind[path] == self.kinds.index(FORWARD)


@remembered
def call_paths(session: Session) -> CallPaths:
    """Paths of `host_calls`, each part of the backward pass under the line of its forward."""
    calls = host_calls(session)
    lane, start, parent = (calls[one].to_numpy(np.int64) for one in ("lane", "ts_ns", "parent"))
    names, kinds = calls["name"].cat, calls["kind"].cat
    name = names.codes.to_numpy(np.int64) + len(ROLES)
    kind = kinds.codes.to_numpy(np.int64) + 2
    line = _forward_lines(calls, name)
    path, made = _paths(parent, name, kind, line, _roles(session, calls))
    pieces = innermost(session)
    texts: list[Any] = [*ROLES, *names.categories]
    return CallPaths(
        parent=made[0],
        name=made[1],
        kind=made[2],
        names=np.array(texts, dtype=object),
        kinds=(THREADS, FORWARD, *kinds.categories),
        pieces=pieces,
        piece_path=path[pieces.call],
        start_ns=start,
        end_ns=start + calls["dur_ns"].to_numpy(np.int64),
        path=path,
        lane=lane,
    )


def _roles(session: Session, calls: pd.DataFrame) -> Ints:
    lane = calls["lane"].to_numpy(np.int64)
    launching = np.isin(lane, lane[(calls["kind"] == "launch").to_numpy()])
    sampled = calls["recording"].isin(sampled_recordings(session)).to_numpy()
    return np.where(sampled, _SAMPLED, np.where(launching, _LAUNCHING, _OTHER)).astype(np.int64)


def _forward_lines(calls: pd.DataFrame, name: Ints) -> Ints:
    """Name of the forward's line of each outermost function of the backward pass; else -1."""
    made = calls["forward"].to_numpy(np.int64) >= 0
    parent = calls["parent"].to_numpy(np.int64)
    inside = nearest_code(np.where(made, 1, -1), parent)
    within = np.append(inside, -1)[parent] >= 0  # in another function of the backward pass
    users = users_around(calls)
    told = made & ~within & users.of_forward
    return np.where(told, np.append(name, -1)[users.row], -1)


def _paths(
    parent: Ints, name: Ints, kind: Ints, line: Ints, role: Ints
) -> tuple[Ints, tuple[Ints, Ints, Ints]]:
    """Path of each call; caller, name and kind of each path."""
    path = np.full(len(parent), -1, dtype=np.int64)
    roles = np.arange(len(ROLES))
    made = [np.stack((np.full_like(roles, -1), roles, np.zeros_like(roles)))]
    count, depth = len(ROLES), depths(parent)
    by_depth = np.argsort(depth, kind="stable")
    edges = np.concatenate(([0], np.cumsum(np.bincount(depth, minlength=1)))).astype(np.int64)
    for first, last in pairwise(edges.tolist()):  # a pass a level, not a call
        here = by_depth[first:last]
        above = np.where(parent[here] >= 0, path[parent[here]], role[here])
        told = line[here] >= 0
        keys = np.stack((above, line[here], np.ones_like(here)))[:, told]
        found, above[told] = _numbered(keys, count)
        made.append(found)
        count += found.shape[1]
        found, path[here] = _numbered(np.stack((above, name[here], kind[here])), count)
        made.append(found)
        count += found.shape[1]
    joined = np.concatenate(made, axis=1).astype(np.int64)
    return path, (joined[0], joined[1], joined[2])


def _numbered(keys: Ints, first: int) -> tuple[Ints, Ints]:
    """The different columns, and for each column which it is, counted from `first`."""
    frame = pd.DataFrame(keys.T, columns=["above", "name", "kind"])
    number = frame.groupby(["above", "name", "kind"], sort=False).ngroup().to_numpy(np.int64)
    _, example = np.unique(number, return_index=True)
    return keys[:, example], first + number
