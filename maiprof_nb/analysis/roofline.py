"""How near matrix products, convolutions and attention come to what the device can do."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis import _flops
from maiprof_nb.analysis._devices import DeviceFacts, device_facts
from maiprof_nb.analysis.device_activity import require_activity
from maiprof_nb.analysis.matrix_calls import matrix_calls
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow


def roofline(session: Session, *, window: TimeWindow | None = None) -> pd.DataFrame:
    """Achieved rates of matrix operators against the peaks of their device.

    Parameters
    ----------
    session : Session
        What was recorded.
    window : TimeWindow, optional
        Calls whose work lies wholly in it count; the window of the figures by default.

    Returns
    -------
    DataFrame
        The rows of `matrix_calls` whose inputs were recorded, with ``kind`` (``matrix product``,
        ``convolution``, ``attention``), ``share`` (of the durations of all work of the device in
        the window), ``arithmetic`` (``fp32``, ``tf32``, ``bf16``, ...), ``size_bytes`` (least
        traffic of one call: each input and output moved once), ``intensity`` (FLOP a byte),
        ``tflops`` and ``gbs`` (achieved by all the calls together), ``peak_tflops``,
        ``peak_gbs``, ``bound`` (``compute`` or ``memory``: which peak is nearer),
        ``roof_share`` (least possible time / device time), ``device_name`` and ``peaks`` (which
        kind of device was taken; missing, as everything that rests on it, where its peaks are
        not known).

    Raises
    ------
    NotAnswerableError
        If no device work was recorded, or no shapes.

    Notes
    -----
    Operations are those the shapes ask for (2 m n k of a product), not counted ones: what a
    kernel does more, less (sparsity, Winograd) or again is not seen.
    The traffic is a floor: reading an input twice is not counted. A share above 1 means that
    caches held the inputs, or that the device is another variant than the one assumed.
    Single precision counts as ``tf32`` where its kernels use tensor cores by their names.
    """
    require_activity(session)
    shown = window or figure_window(session).window
    calls = matrix_calls(session, window=shown)
    total = _work_ns(session, shown)
    calls = calls.merge(total, on=["recording", "device"], how="left")
    found = calls[calls["flops"].notna()].reset_index(drop=True)
    if found.empty:
        raise _without_shapes(calls, int(total["work_ns"].sum()))
    facts = [
        device_facts(session, int(row.recording), None if pd.isna(row.device) else int(row.device))
        for row in found[["recording", "device"]].itertuples()
    ]
    mostly = (found["tensor_core_ns"] * 2 > found["device_ns"]).to_numpy()
    arithmetic = [
        _arithmetic(kind, tensor=on) for kind, on in zip(found["type"], mostly, strict=True)
    ]
    width = np.array([_flops.TYPES.get(kind, (0, ""))[0] for kind in found["type"]], float)
    size = np.where(width > 0, found["elements"].to_numpy(float) * width, np.nan)
    flops, calls = found["flops"].to_numpy(float), found["calls"].to_numpy(float)
    time = found["device_ns"].to_numpy(float)
    peak = np.array([_peak(one, kind) for one, kind in zip(facts, arithmetic, strict=True)])
    bandwidth = np.array([one.peaks.bandwidth_gbs if one.peaks else np.nan for one in facts])
    least = _least_ns(flops, size, peak, bandwidth)
    return found.drop(columns="work_ns").assign(
        kind=[_flops.kind_of(str(name)) for name in found["name"]],
        share=time / found["work_ns"].to_numpy(float),
        arithmetic=arithmetic,
        size_bytes=size,
        intensity=flops / size,
        tflops=flops * calls / time / 1e3,
        gbs=size * calls / time,
        peak_tflops=peak,
        peak_gbs=bandwidth,
        bound=_bound(flops / peak / 1e3, size / bandwidth),
        roof_share=least * calls / time,
        device_name=[one.name for one in facts],
        peaks=[one.peaks.device if one.peaks else None for one in facts],
    )


def _work_ns(session: Session, window: TimeWindow) -> pd.DataFrame:
    """Durations of all work of each device in a window, summed."""
    work = session.table("kernels")
    start = work["ts_ns"].clip(window.start_ns, window.end_ns)
    end = (work["ts_ns"] + work["dur_ns"]).clip(window.start_ns, window.end_ns)
    by = [work["recording"], work["device"]]
    return (end - start).rename("work_ns").groupby(by, dropna=False).sum().reset_index()


def _without_shapes(calls: pd.DataFrame, work_ns: int) -> NotAnswerableError:
    if calls.empty:
        return NotAnswerableError(
            "no matrix product, convolution or attention launched work here, so there is "
            "nothing to hold against the device's peaks",
            remedy="Zoom out; in a trace without them, record with ProfilerActivity.CPU and CUDA "
            "(work replayed as a CUDA graph belongs to no operator)",
        )
    share = units.percent(calls["device_ns"].sum() / max(work_ns, 1))
    return NotAnswerableError(
        f"matrix products, convolutions and attention take {share} of the device's time, but "
        "none was recorded with its shapes, so their arithmetic cannot be told",
        remedy="Record with torch.profiler.profile(record_shapes=True): shapes and types give the "
        "operations and bytes of each call, and so how near it comes to the device's peaks",
    )


def _arithmetic(kind: str | None, *, tensor: bool) -> str | None:
    if not isinstance(kind, str) or kind not in _flops.TYPES:
        return None
    found = _flops.TYPES[kind][1]
    return "tf32" if found == "fp32" and tensor else found


def _peak(facts: DeviceFacts, arithmetic: str | None) -> float:
    peaks = facts.peaks
    if peaks is None or arithmetic is None:
        return float("nan")
    return float(peaks.tflops.get(arithmetic, float("nan")))


def _least_ns(
    flops: npt.NDArray[np.float64],
    size: npt.NDArray[np.float64],
    peak: npt.NDArray[np.float64],
    bandwidth: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Least time of one call: 10^12 a second are 10^3 a nanosecond, 10^9 bytes one."""
    return np.maximum(flops / peak / 1e3, size / bandwidth)


def _bound(
    compute_ns: npt.NDArray[np.float64], memory_ns: npt.NDArray[np.float64]
) -> list[str | None]:
    known = ~np.isnan(compute_ns) & ~np.isnan(memory_ns)
    return [
        ("compute" if c >= m else "memory") if ok else None
        for c, m, ok in zip(compute_ns, memory_ns, known, strict=True)
    ]
