"""Requests for memory that failed, as views mark them."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis.active_memory import MemoryDevice
from maiprof_nb.analysis.refusals import refusals
from maiprof_nb.session import Session

_MOST = 50  # marks in a picture; a job that catches the error may fail again and again


@dataclass(frozen=True, slots=True)
class Refused:
    """One mark.

    Parameters
    ----------
    ts_ns, state : int
        When, in ns of the session and in events of the device's log.
    brief, text : str
        What was asked for; also what was free. Of the largest request only.
    """

    ts_ns: int
    state: int
    brief: str = ""
    text: str = ""


def refused(session: Session, device: MemoryDevice) -> list[Refused]:
    """The largest request that failed, told in words, and the latest others."""
    found = refusals(session, device)
    if found.empty:
        return []
    largest = int(found["requested_bytes"].to_numpy().argmax())
    rows = sorted({largest, *range(max(len(found) - _MOST, 0), len(found))})
    return [
        Refused(
            int(found["ts_ns"].iloc[row]),
            int(found["state"].iloc[row]),
            *(_texts(found.iloc[row], len(found)) if row == largest else ()),
        )
        for row in rows
    ]


def _texts(row: pd.Series, count: int) -> tuple[str, str]:
    free = row["device_free_bytes"]
    left = "" if pd.isna(free) else f", {units.size(float(free))} free on the GPU"
    among = "" if count == 1 else f" (largest of {units.count(count)})"
    brief = f"out of memory: {units.size(float(row['requested_bytes']))}"
    return brief, f"{brief} asked for{left}{among}"
