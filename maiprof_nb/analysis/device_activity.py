"""When each device works, at what, and when it has nothing to do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from maiprof_nb.analysis._intervals import Union, clip, complement, intersect, minus, union
from maiprof_nb.analysis._remember import remembered
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow

MIN_GAP_NS = 1_000


@dataclass(frozen=True)
class Activity:
    """What one device did, as unions of intervals in ns of the session."""

    recording: int
    rank: int | None
    device: int | None
    compute: Union
    communication: Union
    copies: Union
    busy: Union

    @property
    def label(self) -> str:
        """The device by its names, for people."""
        device = "device" if self.device is None else f"GPU {self.device}"
        return device if self.rank is None else f"rank {self.rank}, {device}"


@remembered
def activities(session: Session) -> list[Activity]:
    """One `Activity` for every device that did anything, by recording and device.

    Kernels, copies and memsets count; ranges mirrored to the device, synchronisation
    events and profiler overhead do not.
    """
    work = session.table("kernels")
    made = []
    for (recording, device), rows in work.groupby(["recording", "device"], dropna=False):
        start = rows["ts_ns"].to_numpy(np.int64)
        end = start + rows["dur_ns"].to_numpy(np.int64)
        kind = rows["kind"].to_numpy()
        copies = (kind == "memcpy") | (kind == "memset")
        rank = session.recordings[int(recording)].rank
        made.append(
            Activity(
                recording=int(recording),
                rank=rank,
                device=None if pd.isna(device) else int(device),
                compute=union(start[kind == "compute"], end[kind == "compute"]),
                communication=union(start[kind == "communication"], end[kind == "communication"]),
                copies=union(start[copies], end[copies]),
                busy=union(start, end),
            )
        )
    return made


def require_activity(session: Session) -> list[Activity]:
    """The activities, or the reason why there are none.

    Raises
    ------
    NotAnswerableError
        If no device work was recorded: a trace without it says nothing about idle GPUs.
    """
    found = activities(session)
    if found:
        return found
    launched = session.table("launches")["correlation"].notna().any()
    if launched:
        raise NotAnswerableError(
            "the host launched device work, but the trace holds none of it",
            remedy="Record with ProfilerActivity.CUDA and check that CUPTI is free "
            "(another profiler or DCGM may hold it)",
        )
    raise NotAnswerableError(
        "the recording holds no device work",
        remedy="Load a trace of a GPU job, recorded with ProfilerActivity.CUDA",
    )


def breakdown(session: Session, window: TimeWindow | None = None) -> pd.DataFrame:
    """What each device did with the window; the parts sum to it exactly.

    Parameters
    ----------
    session : Session
        What was recorded.
    window : TimeWindow, optional
        In ns of the session; that of the figures by default.

    Returns
    -------
    DataFrame
        One row a device: ``recording``, ``rank``, ``device``, ``window_ns``,
        ``compute_ns`` (kernels that are not communication), ``exposed_communication_ns``
        (communication with no compute beside it), ``exposed_copy_ns`` (copies and memsets
        with neither beside them), ``idle_ns``, ``busy_share``, ``overlap_share`` (part of
        communication that compute hides; missing without communication).

    Raises
    ------
    NotAnswerableError
        If no device work was recorded.

    Notes
    -----
    Unions per device over all its streams: kernels that run side by side count once, and
    a device is idle only when all its streams are.
    """
    window = figure_window(session).window if window is None else window
    rows = []
    for one in require_activity(session):
        compute = clip(one.compute, window.start_ns, window.end_ns)
        communication = clip(one.communication, window.start_ns, window.end_ns)
        copies = clip(one.copies, window.start_ns, window.end_ns)
        exposed = minus(communication, compute)
        exposed_copies = minus(minus(copies, compute), communication)
        parts = (compute.length_ns, exposed.length_ns, exposed_copies.length_ns)
        hidden = intersect(communication, compute).length_ns
        rows.append(
            {
                "recording": one.recording,
                "rank": one.rank,
                "device": one.device,
                "window_ns": window.dur_ns,
                "compute_ns": parts[0],
                "exposed_communication_ns": parts[1],
                "exposed_copy_ns": parts[2],
                "idle_ns": window.dur_ns - sum(parts),
                "busy_share": sum(parts) / max(window.dur_ns, 1),
                "overlap_share": hidden / communication.length_ns
                if communication.length_ns
                else float("nan"),
            }
        )
    return pd.DataFrame(rows).astype({"rank": "Int64", "device": "Int64"})


def gaps(session: Session) -> pd.DataFrame:
    """Times in the window when a device had no activity on any stream.

    Returns
    -------
    DataFrame
        ``recording``, ``rank``, ``device``, ``ts_ns``, ``dur_ns``, longest first; only
        gaps of at least 1 us.

    Raises
    ------
    NotAnswerableError
        If no device work was recorded.
    """
    window = figure_window(session).window
    rows = []
    for one in require_activity(session):
        empty = complement(one.busy, window.start_ns, window.end_ns)
        rows.append(
            pd.DataFrame(
                {
                    "recording": one.recording,
                    "rank": pd.array([one.rank] * len(empty.start_ns), dtype="Int64"),
                    "device": pd.array([one.device] * len(empty.start_ns), dtype="Int64"),
                    "ts_ns": empty.start_ns,
                    "dur_ns": empty.end_ns - empty.start_ns,
                }
            )
        )
    found = pd.concat(rows, ignore_index=True)
    found = found[found["dur_ns"] >= MIN_GAP_NS]
    return found.sort_values("dur_ns", ascending=False, ignore_index=True)
