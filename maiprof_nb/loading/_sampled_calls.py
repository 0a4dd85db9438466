"""Samples of a thread's stack -> calls of Python functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pandas as pd

from maiprof_nb.tables import SCHEMAS

MAX_DEPTH = 1_000  # Python's own recursion limit; deeper is damage or attack
_MAX_NAME = 2_000


def frame_name(function: object, file: object, line: object) -> str:
    """As Kineto writes a frame: ``file(line): function``."""
    place = f"{file}({line})" if isinstance(line, int) else str(file)
    text = f"{place}: {function}" if file else str(function)
    return " ".join(text[:_MAX_NAME].splitlines()).encode("utf-8", "replace").decode()


@dataclass
class SampledCalls:
    """Calls put together: a frame seen in samples that follow one another is one call.

    Attributes
    ----------
    names, starts_ns, ends_ns, pids, tids, depths : list
        One value a call.
    too_deep : int
        Samples that were cut.
    """

    names: list[str] = field(default_factory=list)
    starts_ns: list[int] = field(default_factory=list)
    ends_ns: list[int] = field(default_factory=list)
    pids: list[str] = field(default_factory=list)
    tids: list[str] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    too_deep: int = 0

    def add(
        self, name: str, start_ns: int, end_ns: int, where: tuple[str, str], depth: int
    ) -> None:
        """One call of a process and thread; `depth` callers lie round it."""
        self.names.append(name)
        self.starts_ns.append(start_ns)
        self.ends_ns.append(max(end_ns, start_ns))
        self.pids.append(where[0])
        self.tids.append(where[1])
        self.depths.append(depth)

    def add_samples(
        self,
        samples: Iterable[tuple[int, int, Sequence[int]]],
        names: Sequence[str],
        pid: str,
        tid: str,
    ) -> None:
        """Samples of one thread in order: start, end, and frames (outermost first)."""
        open_: list[tuple[int, int]] = []  # frame and start of each level
        now = 0
        for start, end, frames in samples:
            if start > now:  # nothing was sampled in between
                self._close(open_, 0, now, names, (pid, tid))
            self.too_deep += len(frames) > MAX_DEPTH
            shown = frames[:MAX_DEPTH]
            same = 0
            for (frame, _), other in zip(open_, shown, strict=False):
                if frame != other:
                    break
                same += 1
            self._close(open_, same, start, names, (pid, tid))
            open_.extend((frame, start) for frame in shown[same:])
            now = end
        self._close(open_, 0, now, names, (pid, tid))

    def _close(
        self, open_: list[tuple[int, int]], keep: int, end_ns: int, names: Sequence[str],
        where: tuple[str, str],
    ) -> None:  # fmt: skip
        while len(open_) > keep:
            frame, start = open_.pop()
            self.add(names[frame], start, end_ns, where, len(open_))

    def table(self) -> pd.DataFrame:
        """The table `python_calls`, by start."""
        count = len(self.names)
        starts = pd.Series(self.starts_ns, dtype="int64")
        lengths = pd.Series(self.ends_ns, dtype="int64") - starts
        # callers first, also where they last as long as what they call
        order = pd.DataFrame({"start": starts, "length": -lengths, "depth": self.depths})
        at = order.sort_values(["start", "length", "depth"]).index
        missing = pd.array([pd.NA] * count, dtype="Int64")
        return SCHEMAS["python_calls"].frame(
            {
                "event": range(count),
                "name": pd.Series(self.names, dtype="str").loc[at].reset_index(drop=True),
                "ts_ns": starts.loc[at].reset_index(drop=True),
                "dur_ns": lengths.loc[at].reset_index(drop=True),
                "pid": pd.Series(self.pids, dtype="str").loc[at].reset_index(drop=True),
                "tid": pd.Series(self.tids, dtype="str").loc[at].reset_index(drop=True),
                "python_id": missing,
                "parent_id": missing,
                "module_id": missing,
            }
        )
