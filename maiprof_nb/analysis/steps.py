"""Steps of the training loop, and the window that figures are computed over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from maiprof_nb.analysis._remember import remembered
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow


@remembered
def steps(session: Session) -> pd.DataFrame:
    """Every recorded step with the device work it launched.

    Returns
    -------
    DataFrame
        ``recording``, ``rank``, ``step``, ``ts_ns``, ``dur_ns`` (of the host's mark) and
        ``end_ns``: the end of the mark, or of the last device work launched inside it if
        that ends later. Sorted by recording and start.

    Notes
    -----
    Device work of one step may still run while the host is in the next, so that steps may
    overlap on the device's side.
    """
    found = session.table("steps").sort_values(["recording", "ts_ns"], ignore_index=True)
    mark_end = found["ts_ns"] + found["dur_ns"]
    found = found[["recording", "rank", "step", "ts_ns", "dur_ns"]].assign(end_ns=mark_end)
    for recording, rows in found.groupby("recording"):
        launched = _work_by_launch(session, int(recording))
        last = _last_end_between(
            launched, rows["ts_ns"].to_numpy(), mark_end[rows.index].to_numpy()
        )
        found.loc[rows.index, "end_ns"] = np.maximum(found.loc[rows.index, "end_ns"], last)
    return found


def _work_by_launch(session: Session, recording: int) -> pd.DataFrame:
    """Launch time and end of the device work of one recording, by launch time."""
    work, launches = session.table("kernels"), session.table("launches")
    work = work[(work["recording"] == recording) & work["correlation"].notna()]
    launches = launches[(launches["recording"] == recording) & launches["correlation"].notna()]
    launches = launches.drop_duplicates("correlation")[["correlation", "ts_ns"]]
    pairs = work.assign(end_ns=work["ts_ns"] + work["dur_ns"])[["correlation", "end_ns"]].merge(
        launches, on="correlation"
    )
    return pairs.sort_values("ts_ns", ignore_index=True)


def _last_end_between(
    launched: pd.DataFrame, start_ns: np.ndarray, end_ns: np.ndarray
) -> np.ndarray:
    at = launched["ts_ns"].to_numpy()
    ends = launched["end_ns"].to_numpy()
    first, last = np.searchsorted(at, start_ns), np.searchsorted(at, end_ns)
    return np.array(
        [ends[a:b].max(initial=0) for a, b in zip(first, last, strict=True)], dtype=np.int64
    )


@dataclass(frozen=True, slots=True)
class FigureWindow:
    """The window figures are computed over, and why it is that one."""

    window: TimeWindow
    reason: str


def figure_window(session: Session) -> FigureWindow:
    """The selected window; else the recorded steps; else the device work; else everything."""
    if session.selected_window is not None:
        return FigureWindow(session.selected_window, "the selected window")
    found = steps(session)
    if len(found):
        window = TimeWindow(int(found["ts_ns"].min()), int(found["end_ns"].max()))
        count = found["step"].nunique()
        return FigureWindow(window, f"{count} recorded step{'s' if count > 1 else ''}")
    work = session.table("kernels")
    if len(work):
        end = int((work["ts_ns"] + work["dur_ns"]).max())
        return FigureWindow(
            TimeWindow(int(work["ts_ns"].min()), end),
            "first to last device activity, as no steps were recorded",
        )
    return FigureWindow(session.span, "the whole recording, as no steps were recorded")
