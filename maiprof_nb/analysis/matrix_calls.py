"""Matrix products, convolutions and attention: their calls, and what each has to do."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis import _flops
from maiprof_nb.analysis._remember import remembered
from maiprof_nb.analysis._work_owners import work_owners
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.analysis.tensor_cores import YES, verdicts
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow

Ints = npt.NDArray[np.int64]

_SHAPES = ["name", "input_dims", "input_types", "concrete_inputs"]


def matrix_calls(session: Session, *, window: TimeWindow | None = None) -> pd.DataFrame:
    """Matrix products, convolutions and attention, grouped by what they were given.

    Parameters
    ----------
    session : Session
        What was recorded.
    window : TimeWindow, optional
        Calls whose work lies wholly in it count; the window of the figures by default.

    Returns
    -------
    DataFrame
        One row a device, operator and inputs: ``recording``, ``rank``, ``device``, ``name``,
        ``input_dims``, ``input_types``, ``concrete_inputs``, ``calls``, ``device_ns`` (kernels
        launched inside the calls), ``tensor_core_ns`` (those that use tensor cores by their
        names), ``undecided_ns``, ``flops`` and ``elements`` of one call, ``m``, ``n``, ``k``
        (missing where the inputs do not tell), ``type`` of the first tensor, ``event`` of the
        longest call. An operator inside another of the list belongs to that one, except that
        autocast calls an operator again with its inputs cast: there the inner call counts, which
        has the types of the product.
    """
    shown = window or figure_window(session).window
    calls = _calls(session)
    whole = (calls["start_ns"] >= shown.start_ns) & (calls["end_ns"] <= shown.end_ns)
    found = (
        calls[whole]
        .groupby(["recording", "rank", "device", *_SHAPES], observed=True, dropna=False)
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


@remembered
def _calls(session: Session) -> pd.DataFrame:
    """Each call of them with the compute work launched in it, the longest first."""
    operators = session.table("operators")
    owners = work_owners(session)
    outermost = owners.outermost(_products(operators["name"], owners.parent))
    work = session.table("kernels")
    flags = np.asarray(verdicts(work["name"]))
    time = work["dur_ns"].to_numpy(np.int64)
    of_call = pd.DataFrame(
        {
            "device": work["device"].to_numpy(),
            "operator": owners.of_work(outermost),
            "start_ns": work["ts_ns"].to_numpy(np.int64),
            "end_ns": work["ts_ns"].to_numpy(np.int64) + time,
            "device_ns": time,
            "tensor_core_ns": np.where(flags == YES, time, 0),
            "undecided_ns": np.where((flags != YES) & (flags != "no"), time, 0),
        }
    )[(work["kind"] == "compute").to_numpy()]
    of_call = of_call[(of_call["operator"] >= 0) & (of_call["device_ns"] > 0)]
    sums = dict.fromkeys(("device_ns", "tensor_core_ns", "undecided_ns"), "sum")
    by_call = of_call.groupby(["operator", "device"], dropna=False)
    calls = by_call.agg({"start_ns": "min", "end_ns": "max", **sums}).reset_index()
    at = calls.pop("operator").to_numpy(np.int64)
    columns = ["recording", "rank", "event", *_SHAPES]
    calls = pd.concat([operators[columns].iloc[at].reset_index(drop=True), calls], axis=1)
    return calls.sort_values("device_ns", ascending=False, kind="stable")


def _products(names: pd.Series, parent: Ints) -> npt.NDArray[np.bool_]:
    """Operators of the list, without those that only call themselves again."""
    wanted = names.isin(_flops.RULES).to_numpy(bool, copy=True)
    codes, _ = pd.factorize(names)
    outer = parent[wanted & (parent >= 0) & (codes == codes[parent])]
    wanted[outer] = False
    return wanted


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
