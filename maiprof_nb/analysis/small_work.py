"""Pieces of device work too short to be worth their launch."""

from __future__ import annotations

import pandas as pd

from maiprof_nb.analysis._remember import remembered
from maiprof_nb.analysis.gap_causes import gap_causes
from maiprof_nb.analysis.launch_rate import LONGEST_LAUNCH_GAP_NS
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.session import Session

SMALL_NS = 10_000  # a launch alone costs the host some 5 us, with its operator more


@remembered
def small_work(session: Session) -> pd.DataFrame:
    """Device work below `SMALL_NS` in the window of the figures, one row a device.

    Returns
    -------
    DataFrame
        ``recording``, ``rank``, ``device``, ``work`` and ``small`` (numbers of pieces),
        ``small_share`` (of the number), ``work_ns``, ``small_ns`` (durations summed),
        ``launch_gaps_ns`` (framework time in gaps of up to 2 ms that a small piece ends: the
        device waits for its launch) and ``launch_gaps`` (their number).

    Raises
    ------
    NotAnswerableError
        If no device work was recorded.
    """
    found = gap_causes(session)
    found = found[found["dur_ns"] <= LONGEST_LAUNCH_GAP_NS]
    work = work_in_window(session)
    work = work.assign(small=work["dur_ns"] < SMALL_NS)
    keys = ["recording", "device"]
    ends = found.assign(at_ns=found["ts_ns"] + found["dur_ns"]).merge(
        work.drop_duplicates([*keys, "ts_ns"])[[*keys, "ts_ns", "small"]],
        left_on=[*keys, "at_ns"],
        right_on=[*keys, "ts_ns"],
    )
    waited = ends[ends["small"] & (ends["launch_bound_ns"] > 0)]
    rows = []
    for (recording, device), mine in work.groupby(keys, dropna=False):
        same = waited["device"].isna() if pd.isna(device) else waited["device"] == device
        before = waited[(waited["recording"] == recording) & same]
        rows.append(
            {
                "recording": recording,
                "rank": mine["rank"].iloc[0],
                "device": device,
                "work": len(mine),
                "small": int(mine["small"].sum()),
                "small_share": float(mine["small"].mean()),
                "work_ns": int(mine["dur_ns"].sum()),
                "small_ns": int(mine.loc[mine["small"], "dur_ns"].sum()),
                "launch_gaps_ns": int(before["launch_bound_ns"].sum()),
                "launch_gaps": len(before),
            }
        )
    columns = [
        "recording", "rank", "device", "work", "small", "small_share", "work_ns", "small_ns",
        "launch_gaps_ns", "launch_gaps",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def work_in_window(session: Session) -> pd.DataFrame:
    """Rows of `kernels` that overlap the window of the figures."""
    window = figure_window(session).window
    work = session.table("kernels")
    inside = (work["ts_ns"] < window.end_ns) & (work["ts_ns"] + work["dur_ns"] > window.start_ns)
    return work[inside]
