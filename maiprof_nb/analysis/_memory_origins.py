"""Which module and which line of the user's code allocations were made in."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._call_sites import is_user_code
from maiprof_nb.analysis._memory_log import MemoryLog
from maiprof_nb.analysis._stack_of_operators import levels_around
from maiprof_nb.session import Session

Ints = npt.NDArray[np.int64]

OUTSIDE = "outside modules"
_FRAME = re.compile(r"^(?P<name>\S+) \((?P<file>.*\.py):(?P<line>\d+)\)$")
_CALLS_A_MODULE = ("_call_impl", "_wrapped_call_impl", "__call__")
_LIBRARY = re.compile(r"(?:^|[/\\])(?:torch|site-packages|dist-packages)[/\\]")


def modules_by_stack(log: MemoryLog) -> pd.Series:
    """The module each allocation was made in, by its stack; missing where that has none.

    A stack knows the module's file and where it was called, not its name.
    """
    texts = log.stacks["frames"].astype(object)
    found = [module_in(str(text).splitlines()) for text in texts]
    by_stack = pd.Series(found, index=log.stacks["stack"].to_numpy(np.int64), dtype=object)
    return log.allocations["stack"].map(by_stack).astype(object)


def lines_of(session: Session, log: MemoryLog, lives: pd.DataFrame) -> pd.Series:
    """The line of the user's code that made each: the stack's label, in traces a Python call."""
    label = log.stacks.set_index("stack")["label"].astype(object)
    told = lives["stack"].map(label).astype(object).fillna("no stack recorded")
    if log.device.kind == "snapshot":
        return told
    traced = _innermost(session, log, lives)
    return told.where(traced.isna(), traced)


def module_in(frames: Sequence[str]) -> str | None:
    """The innermost module of the user's own in a stack, innermost frame first; else of any."""
    found = [one for text in frames if (one := _FRAME.match(text))]
    names = [one["name"] for one in found]
    inside = [number for number, name in enumerate(names) if name == "forward"]
    own = [number for number in inside if not _LIBRARY.search(found[number]["file"])]
    if not inside:
        return None
    at = (own or inside)[0]
    callers = (one for one in found[at + 1 :] if one["name"] not in _CALLS_A_MODULE)
    caller = next(callers, None)
    where = "" if caller is None else f", called in {_place(caller)}"
    return f"{_short(found[at]['file'])}{where}"


def _place(frame: re.Match[str]) -> str:
    return f"{frame['name']} ({_short(frame['file'])}:{frame['line']})"


def _short(file: str) -> str:
    """A file with the folder it lies in."""
    return "/".join(file.replace("\\", "/").split("/")[-2:])


def _innermost(session: Session, log: MemoryLog, lives: pd.DataFrame) -> pd.Series:
    """Innermost Python call of the user's own around each allocation.

    Missing where the trace has none, or what was allocated is older than the log. Snapshots do
    not say the thread: of several, the first that is inside a call counts.
    """
    found = np.full(len(lives), None, dtype=object)
    if log.device.axis != "time":
        return pd.Series(found, index=lives.index, dtype=object)
    at_ns = lives["ts_ns"].to_numpy(np.int64)
    for number, recording in enumerate(session.recordings):
        other = recording.rank != log.device.rank and None not in (recording.rank, log.device.rank)
        if other or not session.placements[number].on_axis:
            continue
        calls = recording.table("python_calls")
        texts = pd.Series(calls["name"].cat.categories, dtype="str")
        calls = calls[np.append(is_user_code(texts), False)[calls["name"].cat.codes.to_numpy()]]
        offset_ns = session.placements[number].offset_ns
        for _, mine in calls.groupby(["pid", "tid"], observed=True):
            start = mine["ts_ns"].to_numpy(np.int64) + offset_ns
            codes = mine["name"].cat.codes.to_numpy(np.int64)
            end = start + mine["dur_ns"].to_numpy(np.int64)
            for level in levels_around(start, end, codes, at_ns):  # the innermost first
                unknown = pd.isna(found) & (level >= 0)
                found[unknown] = texts.to_numpy(object)[level[unknown]]
    found[lives["before_log"].to_numpy(bool)] = None
    return pd.Series(found, index=lives.index, dtype=object)
