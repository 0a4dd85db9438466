"""Events that overlap where they cannot, and events that are there twice."""

from __future__ import annotations

import numpy as np
import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis._intervals import union
from maiprof_nb.trust.rule import Result, judged, not_applicable, rule
from maiprof_nb.trust.trace import Bools, Ints, Trace, ids

_SHARE = 0.01
_CROSSING_SHARE = 0.01
_TWICE_SHARE = 0.001
_HOST = ("operators", "launches", "annotations", "python_calls")
_WIDEST = 2**62


@rule(
    "overlapping-work",
    of="trace",
    title="device work that overlaps on one stream",
    remedy="Use unions (utilisation, breakdown, gaps), not sums of durations",
    reduces=("operator-device-times", "phases"),
)
def overlapping_work(trace: Trace) -> Result:
    """More than 1 % of the device work begins before the work ahead of it on its stream ends.

    With programmatic dependent launch (NVIDIA since Hopper) a kernel starts early and waits
    inside; its duration then counts time that belongs to its predecessor. Sums of durations are
    too large. Figures that are unions (utilisation, breakdown, gaps) stay exact.
    """
    known = trace.work["stream"].notna().to_numpy() & ~_twice(trace.work)
    if not known.any():
        return not_applicable("no device work names its stream")
    start, length = trace.work_start[known], trace.work_dur[known]
    stream = ids(trace.work["stream"])[known]
    device = ids(trace.work["device"])[known]
    order = np.lexsort((start, stream, device))
    start, end = start[order], start[order] + length[order]
    stream, device = stream[order], device[order]
    fresh = np.concatenate(([True], (np.diff(stream) != 0) | (np.diff(device) != 0)))
    reach = _reach(np.cumsum(fresh), end)
    late = np.concatenate(([0], reach[:-1])) - start  # how far the one ahead reaches in
    over = ~fresh & (late > trace.tolerance_ns) & (end > start)
    count = int(over.sum())
    total = int((end - start).sum())
    lane_start = _shifted(np.cumsum(fresh), start)
    united = union(lane_start, lane_start + (end - start)).length_ns
    return judged(
        count,
        count / len(over),
        _SHARE,
        lambda: (
            f"{units.count(count)} of {units.count(len(over))} pieces of device work begin before "
            f"the one ahead on their stream has ended; durations sum to "
            f"{units.percent(total / max(united, 1))} of the time covered. Utilisation, breakdown "
            "and gaps are unions and stay exact; sums of durations are too large."
        ),
    )


def _shifted(lane: Ints, start: Ints) -> Ints:
    """Starts moved so that lanes lie one after the other, where they fit."""
    width = int(start.max() - start.min()) * 2 + 2
    if width > 2**62 // (int(lane.max()) + 2):
        return start
    found: Ints = start - start.min() + lane * width
    return found


def _reach(lane: Ints, end: Ints) -> Ints:
    """The latest end so far on each lane."""
    if len(end) == 0:
        return end
    frame = pd.DataFrame({"lane": lane, "end": end})
    found: Ints = frame.groupby("lane")["end"].cummax().to_numpy(np.int64)
    return found


@rule(
    "host-events-cross",
    of="trace",
    title="host events of one thread that overlap without nesting",
    remedy="Believe inclusive times; for self times record again without the tracer that wrote "
    "the crossing events",
    reduces=("operator-times", "operator-device-times", "phases", "python-in-gaps"),
)
def host_events_cross(trace: Trace) -> Result:
    """An event begins inside another of its thread and ends after it, so neither calls the other.

    Calls of one thread nest. Where more than 1 % do not, viewers drop events or draw them as
    points, and who called whom is a guess. Overlaps within the rounding of the times do not
    count. Python functions are compared with one another only: one that enters or leaves a range
    crosses it by nature.
    """
    start, end, lane = _host_events(trace)
    if len(start) < 2:
        return not_applicable("the trace holds no host events")
    over = crossings(lane, start, end, trace.tolerance_ns)
    count = int(over.sum())
    return judged(
        count,
        count / len(over),
        _CROSSING_SHARE,
        lambda: (
            f"{units.count(count)} of {units.count(len(over))} host events overlap another of "
            "their thread without nesting; self times and callers are guesses there."
        ),
    )


def _host_events(trace: Trace) -> tuple[Ints, Ints, Ints]:
    """Starts, ends and lanes; Python calls are on lanes of their own."""
    rows = [trace.recording.table(name) for name in _HOST]
    start = [table["ts_ns"].to_numpy(np.int64) for table in rows]
    end = [s + table["dur_ns"].to_numpy(np.int64) for s, table in zip(start, rows, strict=True)]
    thread = _codes([table["tid"] for table in rows])
    process = _codes([table["pid"] for table in rows])
    python = np.repeat([name == "python_calls" for name in _HOST], [len(table) for table in rows])
    lane = (process * (int(thread.max(initial=0)) + 1) + thread) * 2 + python
    return np.concatenate(start), np.concatenate(end), lane


def _codes(columns: list[pd.Series]) -> Ints:
    """One number a text over several category columns."""
    known: dict[str, int] = {}
    parts = []
    for column in columns:
        texts = [known.setdefault(str(text), len(known) + 1) for text in column.cat.categories]
        parts.append(np.array([*texts, 0], dtype=np.int64)[column.cat.codes.to_numpy()])
    return np.concatenate(parts)


def crossings(lane: Ints, start_ns: Ints, end_ns: Ints, tolerance_ns: int) -> Bools:
    """Which intervals another of their lane begins in and outlasts, each by more than a tolerance.

    For each interval that is the latest end among those that begin in it: neighbours in the
    order of starts, so one look-up in a table of maxima over runs of 1, 2, 4, ... of them.
    """
    low = int(start_ns.min())
    width = int(end_ns.max()) - low + 1
    lanes = pd.factorize(lane)[0].astype(np.int64)
    if width > _WIDEST // (int(lanes.max()) + 1):
        return np.zeros(len(lane), dtype=bool)  # an absurd time; another rule says so
    start = start_ns - low + lanes * width
    end = start + (end_ns - start_ns)
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    first = np.searchsorted(start, start, side="right")
    count = np.searchsorted(start, np.maximum(end - tolerance_ns, start), side="left") - first
    found = np.zeros(len(lane), dtype=bool)
    highest, run = end, 1
    while (open_ := count >= run).any():
        at = np.flatnonzero(open_ & (count < 2 * run))
        inside = np.maximum(highest[first[at]], highest[first[at] + count[at] - run])
        found[order[at]] = inside > end[at] + tolerance_ns
        highest = np.maximum(highest[:-run], highest[run:]) if len(highest) > run else highest
        run *= 2
    return found


@rule(
    "duplicates",
    of="trace",
    title="events that are in the file twice",
    remedy="Look for the tool that merged or rewrote the file, and load what the profiler wrote",
    reduces=("operator-times", "operator-device-times", "phases"),
)
def duplicates(trace: Trace) -> Result:
    """More than one complete event in a thousand equals another in everything but its position.

    Calls and summed times count them twice; unions do not.
    """
    count, total, names = 0, 0, []
    for table in (*_HOST, "kernels"):
        rows = trace.recording.table(table)
        twice = _twice(rows)
        total += len(rows)
        count += int(twice.sum())
        if twice.any():
            names.append(f"{units.count(int(twice.sum()))} {table}")
    if not total:
        return not_applicable("the trace holds no events")
    return judged(
        count,
        count / total,
        _TWICE_SHARE,
        lambda: (
            f"{units.count(count)} events are exact copies of others ({', '.join(names)}); calls "
            "and summed times count them twice."
        ),
    )


def _twice(rows: pd.DataFrame) -> Bools:
    """Rows equal to an earlier one in all but the position in the file."""
    found = np.zeros(len(rows), dtype=bool)
    start, length = rows["ts_ns"].to_numpy(np.int64), rows["dur_ns"].to_numpy(np.int64)
    order = np.argsort(start, kind="stable")
    same = np.diff(start[order]) == 0
    shared = np.zeros(len(rows), dtype=bool)
    shared[order[1:][same]] = True
    shared[order[:-1][same]] = True
    # calls that took no time may well be two at one moment of a coarse clock
    at = np.flatnonzero(shared & (length > 0))
    if not len(at):
        return found
    part = rows.iloc[at].drop(columns="event")
    codes = {name: part[name].cat.codes for name in part if part[name].dtype == "category"}
    found[at] = part.assign(**codes).duplicated().to_numpy()
    return found
