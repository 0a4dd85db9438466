"""One trace as the rules look at it: columns as arrays, launches and device work paired."""

from __future__ import annotations

import re
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.recording import Recording
from maiprof_nb.timebase import NS_PER_US

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# Calls after which a device must have something to do. Memsets are not among them: in sound traces
# of several GPUs a part of them (of no bytes, or done by the driver) leaves no record.
_STARTING = re.compile(
    r"(?:cuda|hip)(?:Ext)?(?:Module)?Launch(?:Cooperative)?Kernel(?:MultiDevice)?(?:ExC|Ex)?(?:_\w+)?$"
    r"|hip(?:Ext|Hcc)?ModuleLaunch(?:Cooperative)?Kernel(?:MultiDevice)?$"
    r"|hipExtLaunch(?:MultiKernelMultiDevice|Kernel)$"
    r"|cuLaunch(?:Cooperative)?Kernel(?:Ex)?(?:_\w+)?$|cuLaunchGrid(?:Async)?$"
    r"|(?:cuda|hip|cu)GraphLaunch(?:_\w+)?$"
    r"|(?:cuda|hip)Memcpy\w*Async(?:_\w+)?$|hipMemcpyWithStream$"
    r"|cuMemcpy\w*Async(?:_\w+)?$"
)
_BEGIN_CAPTURE, _END_CAPTURE = re.compile(r"StreamBeginCapture"), re.compile(r"StreamEndCapture")
_NONE = -1
_ROUNDED_NS = 2  # start and duration are rounded each


class Trace:
    """A recording of kind ``trace``; everything is computed when first asked for."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording

    @cached_property
    def work(self) -> pd.DataFrame:
        """Device work."""
        return self.recording.table("kernels")

    @cached_property
    def launches(self) -> pd.DataFrame:
        """Host calls of the runtime or driver."""
        return self.recording.table("launches")

    @cached_property
    def work_start(self) -> Ints:
        """Start of each piece of device work, in ns."""
        return self.work["ts_ns"].to_numpy(np.int64)

    @cached_property
    def work_dur(self) -> Ints:
        """Its duration."""
        return self.work["dur_ns"].to_numpy(np.int64)

    @cached_property
    def tolerance_ns(self) -> int:
        """How far times may be off by rounding alone: 1 us where all are whole us, else 2 ns."""
        for name in ("operators", "kernels", "annotations", "python_calls"):
            table = self.recording.table(name)
            for column in ("ts_ns", "dur_ns"):
                if (table[column].to_numpy(np.int64) % NS_PER_US).any():
                    return _ROUNDED_NS
        return NS_PER_US

    @cached_property
    def work_correlation(self) -> Ints:
        """Correlation of each piece of device work; -1 without."""
        return ids(self.work["correlation"])

    @cached_property
    def launch_correlation(self) -> Ints:
        """Correlation of each host call; -1 without."""
        return ids(self.launches["correlation"])

    @cached_property
    def has_launch(self) -> Bools:
        """Which device work has its host call in the trace."""
        known = self.work_correlation != _NONE
        return known & np.isin(self.work_correlation, self.launch_correlation)

    @cached_property
    def has_work(self) -> Bools:
        """Which host calls have device work in the trace."""
        known = self.launch_correlation != _NONE
        return known & np.isin(self.launch_correlation, self.work_correlation)

    @cached_property
    def starting(self) -> Bools:
        """Which host calls must start device work: not those a graph capture only records."""
        return self._named(_STARTING) & ~self.captured

    @cached_property
    def captured(self) -> Bools:
        """Which host calls lie between begin and end of a stream capture."""
        begins, ends = self._named(_BEGIN_CAPTURE), self._named(_END_CAPTURE)
        if not begins.any():
            return np.zeros(len(self.launches), dtype=bool)
        at = self.launches["ts_ns"].to_numpy(np.int64)
        begun = np.searchsorted(np.sort(at[begins]), at, side="right")
        ended = np.searchsorted(np.sort(at[ends]), at, side="left")
        inside: Bools = begun > ended
        return inside

    def _named(self, pattern: re.Pattern[str]) -> Bools:
        names = self.launches["name"].cat
        wanted = np.array([bool(pattern.search(str(n))) for n in names.categories] + [False])
        found: Bools = wanted[names.codes.to_numpy()]  # code -1, no name, is the last
        return found

    @cached_property
    def launch_start(self) -> tuple[Ints, Ints]:
        """Positions of the device work with a launch, and when that host call began."""
        order = np.argsort(self.launch_correlation, kind="stable")
        keys = self.launch_correlation[order]
        rows = np.flatnonzero(self.has_launch)
        first = order[np.searchsorted(keys, self.work_correlation[rows])]
        return rows, self.launches["ts_ns"].to_numpy(np.int64)[first]


def ids(column: pd.Series) -> Ints:
    """A nullable id column as integers; -1 where missing."""
    found: Ints = column.to_numpy(np.int64, na_value=_NONE)
    return found


def examples(names: pd.Series, most: int = 3) -> str:
    """The commonest names with their counts, for people."""
    counts = names.astype("str").value_counts()
    shown = ", ".join(f"{number} {name[:60]}" for name, number in counts.head(most).items())
    return shown if len(counts) <= most else f"{shown}, ..."
