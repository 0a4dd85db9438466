"""Clocks that disagree: of host and device, of recordings, of ranks."""

from __future__ import annotations

import numpy as np
import pandas as pd

from maiprof_nb import units
from maiprof_nb.session import Session
from maiprof_nb.timebase import NS_PER_US
from maiprof_nb.trust.rule import Result, failed, judged, not_applicable, passed, rule
from maiprof_nb.trust.trace import Trace

_RANK_OFFSET_NS = 100 * NS_PER_US
_SPREADS = 3
_ENOUGH = 5


@rule(
    "work-before-launch",
    of="trace",
    title="device work that begins before its launch",
    remedy="Take nothing shorter than the stated time from the order of host and device",
    reduces=("python-in-gaps", "steps", "alignment"),
)
def work_before_launch(trace: Trace) -> Result:
    """Device work begins before the host call that launched it.

    The clocks of host and device disagree at least by that much. Utilisation, breakdown and the
    lengths of gaps are on the device's clock alone and stay exact; what the host did during a
    gap, and delays between launch and start, do not.
    """
    rows, called = trace.launch_start
    if not len(rows):
        return not_applicable("no device work is tied to its launch")
    early = called - trace.work_start[rows]
    at = early > trace.tolerance_ns
    count = int(at.sum())
    return judged(
        count,
        count / len(rows),
        0.0,
        lambda: (
            f"{units.count(count)} of {units.count(len(rows))} pieces of device work begin up to "
            f"{units.duration(int(early.max()))} before their launch: the clocks of host and "
            "device disagree by at least that."
        ),
    )


@rule(
    "off-axis",
    of="session",
    title="a recording is on no common axis of time",
    remedy="Record with time stamps and zone (nvidia-smi --query-gpu=timestamp,..., not dmon), or "
    "place it by hand",
    reduces=("alignment", "metrics"),
)
def off_axis(session: Session) -> Result:
    """A recording has an order only, or a clock that could not be tied to the others."""
    if len(session.recordings) < 2:
        return not_applicable("there is one recording only")
    alone = [
        (recording, placement)
        for recording, placement in zip(session.recordings, session.placements, strict=True)
        if not placement.on_axis
    ]
    if not alone:
        return passed()
    return failed(
        f"{units.count(len(alone))} of {units.count(len(session.recordings))} recordings are on an "
        f"axis of their own; the first, a {alone[0][0].kind}: {alone[0][1].origin}.",
        len(alone),
        len(alone) / len(session.recordings),
    )


@rule(
    "clock-uncertain",
    of="session",
    title="a clock is less sure than the window is long",
    remedy="State the zone of the time stamps, or place the recording by hand",
    reduces=("alignment", "metrics"),
)
def clock_uncertain(session: Session) -> Result:
    """The time of a recording may be off by more than all that was recorded."""
    if len(session.recordings) < 2:
        return not_applicable("there is one recording only")
    span = session.span.dur_ns
    unsure = [
        (recording, placement.uncertainty_ns)
        for recording, placement in zip(session.recordings, session.placements, strict=True)
        if placement.on_axis and (placement.uncertainty_ns or 0) > span > 0
    ]
    if not unsure:
        return passed()
    recording, uncertainty_ns = unsure[0]
    return failed(
        f"The clock of a recording ({recording.kind}) is sure to "
        f"{units.duration(uncertainty_ns or 0)} only, and the window lasts {units.duration(span)}.",
        len(unsure),
        len(unsure) / len(session.recordings),
    )


@rule(
    "rank-clocks",
    of="session",
    title="the clocks of ranks disagree",
    remedy="Compare durations among ranks, not moments, below the stated difference",
    reduces=("ranks", "alignment"),
)
def rank_clocks(session: Session) -> Result:
    """Collectives end at nearly one moment on all ranks; here they end apart by a steady amount.

    Ranks are compared where each recorded the same sequence of collective kernels. The offset of
    a rank is the median over them; it counts above 100 us and above three times its spread.
    """
    ends = _collective_ends(session)
    if len(ends) < 2:
        return not_applicable("no collectives of several ranks on one clock can be matched")
    table = np.stack(list(ends.values()))
    if table.shape[1] < _ENOUGH:
        return not_applicable("there are too few collectives to tell")
    apart = table - np.median(table, axis=0)
    offset = np.median(apart, axis=1)
    spread = np.median(np.abs(apart - offset[:, None]), axis=1)
    steady = (np.abs(offset) > _RANK_OFFSET_NS) & (np.abs(offset) > _SPREADS * spread)
    count = int(steady.sum())
    worst = int(np.argmax(np.abs(offset)))
    return judged(
        count,
        count / len(offset),
        0.0,
        lambda: (
            f"The clocks of {units.count(count)} of {units.count(len(offset))} ranks differ from "
            f"the others' by up to {units.duration(abs(float(offset[worst])))} "
            f"(rank {list(ends)[worst]}), by the ends of their collectives."
        ),
    )


def _collective_ends(session: Session) -> dict[int, np.ndarray]:
    """Ends of the collectives that all ranks share, in one order, by rank."""
    found: dict[int, pd.Series] = {}
    for recording, placement in zip(session.recordings, session.placements, strict=True):
        if recording.kind != "trace" or recording.rank is None or not placement.on_axis:
            continue
        work = recording.table("kernels")
        work = work[work["kind"] == "communication"].sort_values("ts_ns", kind="stable")
        name = work["name"].astype("str")
        number = name.groupby(name).cumcount()
        end = work["ts_ns"] + work["dur_ns"] + placement.offset_ns
        found[recording.rank] = pd.Series(
            end.to_numpy(np.int64), index=pd.MultiIndex.from_arrays([name, number])
        )
    if len(found) < 2:
        return {}
    counts = [series.groupby(level=0).size() for series in found.values()]
    same = [
        name
        for name in counts[0].index
        if all(count.get(name, 0) == counts[0][name] for count in counts)
    ]
    if not same:
        return {}
    first = next(iter(found.values()))
    order = first[first.index.get_level_values(0).isin(same)].index
    return {rank: series.reindex(order).to_numpy(np.float64) for rank, series in found.items()}
