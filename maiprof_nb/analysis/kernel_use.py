"""What kernels' launch configurations and names say of the device's use, over time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._intervals import Union, overlap, union_of
from maiprof_nb.analysis._levels import Levels, levels
from maiprof_nb.analysis._remember import remembered
from maiprof_nb.analysis.device_activity import activities
from maiprof_nb.analysis.tensor_cores import UNDECIDED, YES, verdicts
from maiprof_nb.analysis.utilisation import bin_edges
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

SM_EFFICIENCY, OCCUPANCY = "est. SM efficiency", "est. achieved occupancy"
TENSOR_CORES, NAME_UNDECIDED = "tensor cores by name", "name decides nothing"
_COLUMNS = ("series", "what", "ts_ns", "dur_ns", "value")


@dataclass(frozen=True)
class _Device:
    """Step functions and unions of one device's kernels; None where no kernel says it."""

    label: str
    efficiency: Levels | None
    occupancy: Levels | None
    running: Levels | None
    tensor_cores: Union
    undecided: Union


def kernel_use(
    session: Session, *, window: TimeWindow | None = None, bins: int = 1000
) -> pd.DataFrame:
    """Estimated use of each device's multiprocessors and tensor cores in equal bins.

    Parameters
    ----------
    session : Session
        What to look at.
    window : TimeWindow, optional
        Time shown, in ns of the session; the session's own window by default.
    bins : int
        Number of bins, e.g. the width of the picture in pixels.

    Returns
    -------
    DataFrame
        ``series`` (label of the device), ``what``, ``ts_ns`` and ``dur_ns`` of the bin,
        ``value`` (0 to 1). ``what`` is ``est. SM efficiency`` (mean over the bin of the
        running kernels' blocks per SM, added up and at most 1), ``est. achieved occupancy``
        (mean of the running kernels' estimates, by their time in the bin; missing where none
        runs), ``tensor cores by name`` (share of the bin in which a kernel runs whose name
        says that it uses them) and ``name decides nothing`` (the same of kernels whose name
        does not tell). The first two are left out of a device whose kernels do not say them
        (ROCm). Empty without device kernels.

    Notes
    -----
    None of it is measured. Unlike `sm_efficiency`, it looks at the whole recording, not only
    at the steps.
    """
    edges = bin_edges(window or session.window, bins)
    width = np.maximum(np.diff(edges), 1)
    parts = []
    for one in _devices(session):
        found: dict[str, Floats] = {}
        if one.efficiency is not None:
            found[SM_EFFICIENCY] = one.efficiency.integral_ns(edges) / width
        if one.occupancy is not None and one.running is not None:
            time = one.running.integral_ns(edges)
            ran = time >= 0.5  # whole ns, so that less is none
            share = one.occupancy.integral_ns(edges) / np.where(ran, time, 1.0)
            found[OCCUPANCY] = np.where(ran, share, np.nan)
        found[TENSOR_CORES] = overlap(one.tensor_cores, edges[:-1], edges[1:]) / width
        found[NAME_UNDECIDED] = overlap(one.undecided, edges[:-1], edges[1:]) / width
        for what, value in found.items():
            rows = {"ts_ns": edges[:-1], "dur_ns": np.diff(edges), "value": value}
            parts.append(pd.DataFrame({"series": one.label, "what": what} | rows))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=_COLUMNS)


@remembered
def _devices(session: Session) -> list[_Device]:
    work = session.table("kernels")
    work = work[work["kind"].isin(["compute", "communication"]) & (work["dur_ns"] > 0)]
    work = work.assign(verdict=verdicts(work["name"]))
    found = []
    for one in activities(session):
        device = work["device"].isna() if one.device is None else work["device"] == one.device
        mine = work[(work["recording"] == one.recording).to_numpy() & device.to_numpy(bool)]
        if mine.empty:
            continue
        blocks, occupancy = _known(mine, "blocks_per_sm", 0), _known(mine, "est_occupancy_pct", -1)
        found.append(
            _Device(
                label=one.label,
                efficiency=_levels(blocks, blocks["blocks_per_sm"], 1.0).capped(1.0)
                if len(blocks)
                else None,
                occupancy=_levels(occupancy, occupancy["est_occupancy_pct"], 0.01)
                if len(occupancy)
                else None,
                running=_levels(occupancy, occupancy["dur_ns"] > 0, 1.0)
                if len(occupancy)
                else None,
                tensor_cores=union_of(mine[mine["verdict"] == YES]),
                undecided=union_of(mine[mine["verdict"] == UNDECIDED]),
            )
        )
    return found


def _known(work: pd.DataFrame, column: str, above: float) -> pd.DataFrame:
    return work[(work[column].astype("float64").fillna(-1.0) > above).to_numpy()]


def _levels(work: pd.DataFrame, weight: pd.Series, scale: float) -> Levels:
    start, dur = (work[name].to_numpy(np.int64) for name in ("ts_ns", "dur_ns"))
    return levels(start, dur, weight.to_numpy(np.float64) * scale)
