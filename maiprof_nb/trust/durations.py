"""Durations that cannot be, or that outweigh everything else."""

from __future__ import annotations

import numpy as np

from maiprof_nb import units
from maiprof_nb.trust.rule import Result, failed, not_applicable, passed, rule
from maiprof_nb.trust.trace import Trace

_FEW = 10  # with fewer events the longest is no outlier
_HOST_FACTOR = 10
_HOST = ("operators", "launches", "annotations", "python_calls")


@rule(
    "one-long-event",
    of="trace",
    title="one piece of device work longer than all the rest of the trace",
    remedy="Select a window without it",
    reduces=("gpu-utilisation", "breakdown", "gaps", "operator-device-times", "phases", "ranks"),
)
def one_long_event(trace: Trace) -> Result:
    """One kernel or copy takes more than half of the time from the first to the last.

    Typically the first collective of a recording, which waits until the profilers of all other
    ranks have started: every share is then a share of that wait.
    """
    if len(trace.work) <= _FEW:
        return not_applicable("there is too little device work to tell")
    end = trace.work_start + trace.work_dur
    span = int(end.max() - trace.work_start.min())
    longest = int(np.argmax(trace.work_dur))
    length = int(trace.work_dur[longest])
    if 2 * length <= span:
        return passed(0, length / max(span, 1))
    row = trace.work.iloc[longest]
    waits = " It is a collective and may have waited for the other ranks' profilers to start." * (
        row["kind"] == "communication"
    )
    return failed(
        f"{str(row['name'])[:80]} lasts {units.duration(length)}, longer than all the rest of the "
        f"device's time in the trace ({units.duration(span - length)}).{waits}",
        1,
        length / max(span, 1),
    )


@rule(
    "absurd-duration",
    of="trace",
    title="a host event that ends far beyond everything else",
    remedy="Select the window that the other events fill",
    reduces=("operator-times", "phases", "steps", "python-in-gaps"),
)
def absurd_duration(trace: Trace) -> Result:
    """One event of the host is ten times as long as the time that all others together span.

    Its end was not recorded, or overflowed.
    """
    starts, ends = [trace.work_start], [trace.work_start + trace.work_dur]
    longest, name = 0, ""
    for table in _HOST:
        rows = trace.recording.table(table)
        start, length = rows["ts_ns"].to_numpy(np.int64), rows["dur_ns"].to_numpy(np.int64)
        starts.append(start)
        ends.append(start + length)
        if length.max(initial=0) > longest:
            longest, name = int(length.max()), str(rows["name"].iloc[int(np.argmax(length))])
    end, start = np.concatenate(ends), np.concatenate(starts)
    if len(end) <= _FEW:
        return not_applicable("there are too few events to tell")
    spans = np.flatnonzero(end - start == longest)
    rest = np.ones(len(end), dtype=bool)
    rest[spans[:1]] = False
    span = int(end[rest].max() - start[rest].min())
    if longest <= _HOST_FACTOR * span:
        return passed()
    return failed(
        f"{name[:80]} lasts {units.duration(longest)}, but everything else happens within "
        f"{units.duration(span)}.",
        1,
        1 / len(end),
    )
