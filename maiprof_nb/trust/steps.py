"""Steps that the window of the recording cut."""

from __future__ import annotations

import numpy as np

from maiprof_nb import units
from maiprof_nb.trust.launches import LOST_SHARE
from maiprof_nb.trust.reading import was_cut
from maiprof_nb.trust.rule import Result, failed, not_applicable, passed, rule
from maiprof_nb.trust.trace import Ints, Trace

_SHORT = 0.5
_ENOUGH = 4  # steps, to say that one at the edge is short


@rule(
    "torn-steps",
    of="trace",
    title="the first or last step is torn",
    remedy="Select the steps between them (session.select(steps=...)), or let the profiler warm up "
    "and finish the device's work before it stops",
    reduces=("steps", "gpu-utilisation", "breakdown", "gaps", "phases", "ranks"),
)
def torn_steps(trace: Trace) -> Result:
    """The window of the recording cut the first or the last step, so it looks cheaper than it is.

    Signs: its mark has no duration, or less than half of the median of at least four steps; the
    file was cut; or its first launches (of the first step) or last ones (of the last step), more
    than 1 % of them, have no device work.
    """
    marks = trace.recording.table("steps").sort_values("ts_ns", kind="stable")
    if marks.empty:
        return not_applicable("no steps are marked")
    start = marks["ts_ns"].to_numpy(np.int64)
    length = marks["dur_ns"].to_numpy(np.int64)
    edges = sorted({0, len(marks) - 1})
    numbers = marks["step"].to_numpy(np.int64)
    found = [
        f"step {numbers[at]} ({why})"
        for at in edges
        if (why := _why_torn(trace, start, length, at))
    ]
    if not found:
        return passed()
    return failed(
        f"Torn by the window of the recording: {'; '.join(found)}. Figures over all steps include "
        "it and come out too low.",
        len(found),
        len(found) / len(marks),
    )


def _why_torn(trace: Trace, start: Ints, length: Ints, at: int) -> str:
    if length[at] == 0:
        return "its mark has no end"
    typical = float(np.median(length))
    if len(length) >= _ENOUGH and length[at] < _SHORT * typical:
        return f"{units.duration(int(length[at]))} instead of {units.duration(typical)}"
    if at == len(start) - 1 and was_cut(trace.recording):
        return "the file ends inside it"
    lost, launched = _lost_at_edge(trace, start[at], start[at] + length[at], last=at > 0)
    if lost > LOST_SHARE * launched:
        return (
            f"the {'last' if at else 'first'} {units.count(lost)} of {units.count(launched)} "
            "launches in it have no device work"
        )
    return ""


def _lost_at_edge(trace: Trace, start_ns: int, end_ns: int, *, last: bool) -> tuple[int, int]:
    """Launches without work at that end of a step, and all launches of the step."""
    if not len(trace.work):
        return 0, 0
    called = trace.launches["ts_ns"].to_numpy(np.int64)
    inside = np.flatnonzero(trace.starting & (called >= start_ns) & (called < end_ns))
    has_work = trace.has_work[inside[np.argsort(called[inside], kind="stable")]]
    if not has_work.any():
        return len(has_work), len(has_work)
    return int(np.argmax(has_work[::-1] if last else has_work)), len(has_work)
