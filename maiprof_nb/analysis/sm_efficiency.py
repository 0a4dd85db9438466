"""How much of its multiprocessors each device uses, estimated from launch configurations."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._levels import levels
from maiprof_nb.analysis._remember import remembered
from maiprof_nb.analysis.device_activity import require_activity
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.session import Session

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_KEYS = ["recording", "rank", "device"]


def sm_efficiency(session: Session) -> pd.DataFrame:
    """Estimated SM efficiency and achieved occupancy of each device.

    Returns
    -------
    DataFrame
        One row a device: ``recording``, ``rank``, ``device``, ``window_ns``,
        ``est_sm_efficiency`` (0 to 1: over the window, blocks per SM of the kernels running
        at a moment, added up and at most 1), ``est_sm_efficiency_busy`` (the same over the
        time in which kernels ran), ``est_occupancy`` (0 to 1: mean of the kernels' estimated
        achieved occupancy, weighted by their time), ``recorded_share`` (of kernel time that
        says its blocks per SM). Missing where no kernel says it.

    Raises
    ------
    NotAnswerableError
        If no device work was recorded, or none of it says its blocks per SM (ROCm).

    Notes
    -----
    Not a measurement: a grid of as many blocks as there are SMs counts as full, whatever
    the blocks do. SM_ACTIVE and SM_OCCUPANCY of DCGM are measured and are other figures.
    """
    require_activity(session)
    work = _kernels(session)
    if not len(work) or not (work["blocks_per_sm"] > 0).any():
        raise NotAnswerableError(
            "no kernel says how many blocks it has per multiprocessor",
            remedy="Only traces of NVIDIA GPUs hold launch configurations; measure SM_ACTIVE "
            "with DCGM, or read the occupancy of single kernels with the vendor's profiler",
        )
    window = figure_window(session).window
    rows = []
    for key, of_device in work.groupby(_KEYS, dropna=False):
        at, running = _level(of_device)
        time = of_device["dur_ns"].to_numpy(np.float64)
        said = of_device["blocks_per_sm"].to_numpy(np.float64) > 0
        used = float((np.minimum(running[:-1], 1.0) * np.diff(at)).sum()) if len(at) else 0.0
        busy = float(np.diff(at)[running[:-1] > 0].sum()) if len(at) else 0.0
        occupancy = of_device["est_occupancy_pct"].to_numpy(np.float64)
        known = occupancy >= 0
        rows.append(
            dict(zip(_KEYS, key, strict=True))
            | {
                "window_ns": window.dur_ns,
                "est_sm_efficiency": _ratio(used, window.dur_ns) if said.any() else np.nan,
                "est_sm_efficiency_busy": _ratio(used, busy),
                "est_occupancy": _ratio(
                    float((occupancy[known] * time[known]).sum()) / 100, float(time[known].sum())
                ),
                "recorded_share": _ratio(float(time[said].sum()), float(time.sum())),
            }
        )
    return pd.DataFrame(rows).astype({"rank": "Int64", "device": "Int64"})


@remembered
def sm_efficiency_curve(session: Session) -> pd.DataFrame:
    """Estimated SM efficiency over time, as a step function.

    Returns
    -------
    DataFrame
        ``recording``, ``rank``, ``device``, ``ts_ns``, ``est_sm_efficiency`` (0 to 1, holds
        until the next row of the device).
    """
    parts = []
    for key, of_device in _kernels(session).groupby(_KEYS, dropna=False):
        at, running = _level(of_device)
        level = np.minimum(running, 1.0)
        changed = np.append(True, np.diff(level) != 0) if len(at) else np.empty(0, bool)
        part = pd.DataFrame({"ts_ns": at[changed], "est_sm_efficiency": level[changed]})
        parts.append(part.assign(**dict(zip(_KEYS, key, strict=True))))
    columns = [*_KEYS, "ts_ns", "est_sm_efficiency"]
    if not parts:
        return pd.DataFrame(columns=columns)
    found = pd.concat(parts, ignore_index=True)[columns]
    return found.astype({"rank": "Int64", "device": "Int64"})


def _kernels(session: Session) -> pd.DataFrame:
    """Kernels with their time inside the window of the figures."""
    window = figure_window(session).window
    work = session.table("kernels")
    work = work[work["kind"].isin(["compute", "communication"])]
    start = work["ts_ns"].clip(window.start_ns, window.end_ns)
    end = (work["ts_ns"] + work["dur_ns"]).clip(window.start_ns, window.end_ns)
    columns = {
        name: work[name].astype("float64").fillna(-1.0)
        for name in ("blocks_per_sm", "est_occupancy_pct")
    }
    work = work[_KEYS].assign(ts_ns=start, dur_ns=end - start, **columns)
    return work[work["dur_ns"] > 0]


def _level(work: pd.DataFrame) -> tuple[Ints, Floats]:
    """Moments at which the sum of blocks per SM changes, and the sum from each on."""
    work = work[work["blocks_per_sm"] > 0]
    found = levels(
        work["ts_ns"].to_numpy(np.int64),
        work["dur_ns"].to_numpy(np.int64),
        work["blocks_per_sm"].to_numpy(np.float64),
    )
    return found.at_ns, found.level


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else float("nan")
