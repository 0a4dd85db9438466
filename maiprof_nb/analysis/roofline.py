"""How near matrix products, convolutions and attention come to what the device can do."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis import _flops
from maiprof_nb.analysis._devices import DeviceFacts, device_facts
from maiprof_nb.analysis._remember import remembered
from maiprof_nb.analysis._work_owners import work_owners
from maiprof_nb.analysis.device_activity import require_activity
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.analysis.tensor_cores import YES, verdicts
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.session import Session

Ints = npt.NDArray[np.int64]

_SHAPES = ["name", "input_dims", "input_types", "concrete_inputs"]


@remembered
def matrix_calls(session: Session) -> pd.DataFrame:
    """Matrix products, convolutions and attention, grouped by what they were given.

    Returns
    -------
    DataFrame
        One row a device, operator and inputs: ``recording``, ``rank``, ``device``, ``name``,
        ``input_dims``, ``input_types``, ``concrete_inputs``, ``calls``, ``device_ns`` (kernels
        in the window of the figures launched inside the calls), ``tensor_core_ns`` (those that
        use tensor cores by their names), ``undecided_ns``, ``flops`` and ``elements`` of one
        call, ``m``, ``n``, ``k`` (missing where the inputs do not tell), ``type`` of the first
        tensor, ``event`` of the longest call. An operator inside another of the list belongs
        to that one, except that autocast calls an operator again with its inputs cast: there the
        inner call counts, which has the types of the product.
    """
    window = figure_window(session).window
    operators = session.table("operators")
    owners = work_owners(session)
    outermost = owners.outermost(_products(operators["name"], owners.parent))
    work = session.table("kernels")
    start = work["ts_ns"].clip(window.start_ns, window.end_ns)
    end = (work["ts_ns"] + work["dur_ns"]).clip(window.start_ns, window.end_ns)
    flags = np.asarray(verdicts(work["name"]))
    time = (end - start).to_numpy(np.int64)
    of_call = pd.DataFrame(
        {
            "device": work["device"].to_numpy(),
            "operator": owners.of_work(outermost),
            "device_ns": time,
            "tensor_core_ns": np.where(flags == YES, time, 0),
            "undecided_ns": np.where((flags != YES) & (flags != "no"), time, 0),
        }
    )[(work["kind"] == "compute").to_numpy()]
    of_call = of_call[(of_call["operator"] >= 0) & (of_call["device_ns"] > 0)]
    calls = of_call.groupby(["operator", "device"], dropna=False).sum().reset_index()
    at = calls.pop("operator").to_numpy(np.int64)
    columns = ["recording", "rank", "event", *_SHAPES]
    calls = pd.concat([operators[columns].iloc[at].reset_index(drop=True), calls], axis=1)
    calls = calls.sort_values("device_ns", ascending=False, kind="stable")
    found = (
        calls.groupby(["recording", "rank", "device", *_SHAPES], observed=True, dropna=False)
        .agg(
            calls=("device_ns", "size"),
            device_ns=("device_ns", "sum"),
            tensor_core_ns=("tensor_core_ns", "sum"),
            undecided_ns=("undecided_ns", "sum"),
            event=("event", "first"),
        )
        .reset_index()
    )
    return _with_effort(found).sort_values("device_ns", ascending=False, ignore_index=True)


def _products(names: pd.Series, parent: Ints) -> npt.NDArray[np.bool_]:
    """Operators of the list, without those that only call themselves again."""
    wanted = names.isin(_flops.RULES).to_numpy(bool, copy=True)
    codes, _ = pd.factorize(names)
    outer = parent[wanted & (parent >= 0) & (codes == codes[parent])]
    wanted[outer] = False
    return wanted


def roofline(session: Session) -> pd.DataFrame:
    """Achieved rates of matrix operators against the peaks of their device.

    Returns
    -------
    DataFrame
        The rows of `matrix_calls` whose inputs were recorded, with ``arithmetic`` (``fp32``,
        ``tf32``, ``bf16``, ...), ``size_bytes`` (least traffic of one call: each input and
        output moved once), ``intensity`` (FLOP a byte), ``tflops`` and ``gbs`` (achieved by all
        the calls together), ``peak_tflops``, ``peak_gbs``, ``bound`` (``compute`` or ``memory``:
        which peak is nearer), ``roof_share`` (least possible time / device time), ``device_name``
        and ``peaks`` (which kind of device was taken; missing, as everything that rests on it,
        where its peaks are not known).

    Raises
    ------
    NotAnswerableError
        If no device work was recorded, or no shapes.

    Notes
    -----
    The traffic is a floor: reading an input twice is not counted. A share above 1 means that
    caches held the inputs, or that the device is another variant than the one assumed.
    Single precision counts as ``tf32`` where its kernels use tensor cores by their names.
    """
    require_activity(session)
    found = matrix_calls(session)
    found = found[found["flops"].notna()].reset_index(drop=True)
    if found.empty:
        raise NotAnswerableError(
            "no matrix product, convolution or attention was recorded with its shapes",
            remedy="Record with torch.profiler.profile(record_shapes=True)",
        )
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
    return found.assign(
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


def _with_effort(found: pd.DataFrame) -> pd.DataFrame:
    calls = [
        _flops.parsed(row.input_dims, row.input_types, row.concrete_inputs)
        for row in found[_SHAPES].itertuples()
    ]
    efforts = [_flops.effort(str(n), c) for n, c in zip(found["name"], calls, strict=True)]
    matrices = [one.matrix if one else (None, None, None) for one in efforts]
    numbers = {
        "flops": [one.flops if one else None for one in efforts],
        "elements": [one.elements if one else None for one in efforts],
        "m": [m for m, _, _ in matrices],
        "n": [n for _, n, _ in matrices],
        "k": [k for _, _, k in matrices],
    }
    arrays = {name: pd.array(values, dtype="Int64") for name, values in numbers.items()}
    return found.assign(type=[_first_type(call) for call in calls], **arrays)


def _first_type(call: _flops.Call) -> str | None:
    """Type of the first input that is a tensor of numbers."""
    return next((kind for kind in call.types if kind in _flops.TYPES), None)


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
