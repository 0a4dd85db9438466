"""The training loop by phase: data loading, forward, backward, optimizer, other."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._host_calls import KINDS, NO_EVENT, calls_on_axis, used_recordings
from maiprof_nb.analysis._intervals import Union, clip, merged, minus, union_of
from maiprof_nb.analysis._nesting import nearest_code
from maiprof_nb.analysis._remember import remembered
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.session import Session

PHASES = ("data loading", "forward", "backward", "optimizer", "other")
_LOADING, _FORWARD, _BACKWARD, _OPTIMIZER, _OTHER = range(len(PHASES))
_NONE = -1
_COLUMNS = ["recording", "event", "ts_ns", "dur_ns", "pid", "tid", "kind"]

# Names that say which phase a call begins; the first that matches wins.
_RULES = (
    (
        _LOADING,
        re.compile(
            r"enumerate\(DataLoader\)|utils/data/|data_?load|sharded_iterrows|iterrows|next_batch|prefetch",
            re.IGNORECASE,
        ),
    ),
    (
        _OPTIMIZER,
        re.compile(
            r"Optimizer\.step#|optim/\w+\.py\(\d+\): (?:step|wrapper)\b"
            r"|amp/grad_scaler\.py\(\d+\): (?:step|unscale_|update)\b"
        ),
    ),
    (_OTHER, re.compile(r"Optimizer\.zero_grad#|: zero_grad\b")),
    (
        _BACKWARD,
        re.compile(
            r"autograd::engine::evaluate_function|Backward\d*$|AccumulateGrad$"
            r"|_tensor\.py\(\d+\): backward\b"
            r"|amp/grad_scaler\.py\(\d+\): scale\b|##\s*backward\s*##",
            re.IGNORECASE,
        ),
    ),
    (_FORWARD, re.compile(r"nn\.Module: |##\s*forward\s*##", re.IGNORECASE)),
)


@remembered
def phase_calls(session: Session) -> pd.DataFrame:
    """Every host call with the phase it belongs to.

    Returns
    -------
    DataFrame
        ``recording``, ``event``, ``ts_ns``, ``dur_ns``, ``pid``, ``tid``, ``kind``,
        ``phase`` and ``caller_phase`` (codes into ``PHASES``; -1 without caller). A call has
        the phase its own name says (a range of the optimizer, a data loader's frame,
        autograd's evaluation of a function, a
        module's forward), or else that of the call it lies in; operators whose autograd
        sequence number comes back in the backward pass are forward; the rest is other.
    """
    calls = calls_on_axis(session)
    parent = calls["parent"].to_numpy(np.int64)
    own = _phase_of_names(calls["name"])
    # Loaders, optimizers and backward functions run operators whose sequence number is merely
    # the current one, so only operators outside every named phase are told by it.
    nameless = (own < 0) & (_inherit(own, parent, _NONE) == _NONE)
    forward = nameless & _comes_back(calls, own)
    own[forward] = _FORWARD
    phase = _inherit(own, parent, _OTHER)
    around = np.where(parent >= 0, phase[parent], _NONE)
    found = calls[_COLUMNS].assign(phase=phase, caller_phase=around)
    tables = {kind: table for table, kind in KINDS.items()}
    found["kind"] = found["kind"].cat.rename_categories(tables)
    recorded = (calls["event"] != NO_EVENT).to_numpy()
    return found if recorded.all() else found[recorded].reset_index(drop=True)


def _phase_of_names(names: pd.Series) -> npt.NDArray[np.int64]:
    texts = names.cat.categories
    phase = [next((code for code, rule in _RULES if rule.search(text)), _NONE) for text in texts]
    return np.array([*phase, _NONE], dtype=np.int64)[names.cat.codes.to_numpy()]


def _comes_back(calls: pd.DataFrame, own: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Operators whose sequence number a backward function carries too."""
    known = calls["sequence"].notna().to_numpy()
    number = calls["sequence"].fillna(0).to_numpy(np.int64)
    key = calls["recording"].to_numpy(np.int64) * 2**40 + number
    return known & np.isin(key, key[known & (own == _BACKWARD)])


def _inherit(
    own: npt.NDArray[np.int64], parent: npt.NDArray[np.int64], default: int
) -> npt.NDArray[np.int64]:
    """Own phase, or that of the nearest caller that has one, or `default`."""
    phase = nearest_code(own, parent)
    return np.where(phase < 0, default, phase)


def phases(session: Session) -> pd.DataFrame:
    """Time and device work of each phase over the window of the figures.

    Returns
    -------
    DataFrame
        One row a phase: ``phase``, ``host_ns`` (time in which any thread of the loop is in the
        phase; the time of a phase inside another goes to the inner one), ``host_share`` (of the
        window), ``device_ns`` (durations of the device work the phase launched, summed),
        ``kernels`` (number of launched pieces of device work), ``mean_kernel_ns``.

    Notes
    -----
    Threads of the loop are those that mark steps, run operators or launch device work;
    workers that only run Python are left out. Device work belongs to the phase that launched
    it, not to the one the host is in when it runs. Phases with a name may overlap on different
    threads (or ranks), so shares may sum to more than one; *other* overlaps none of its rank's.
    """
    window = figure_window(session).window
    calls = phase_calls(session)
    loop = threads_of_the_loop(calls)
    work = work_with_phase(session, calls)
    inside = (work["ts_ns"] < window.end_ns) & (work["ts_ns"] + work["dur_ns"] > window.start_ns)
    work = work[inside]
    rows = []
    for code, name in enumerate(PHASES):
        launched = work[work["phase"] == code]
        host = clip(phase_time(loop, code), window.start_ns, window.end_ns).length_ns
        rows.append(
            {
                "phase": name,
                "host_ns": host,
                "host_share": host / max(window.dur_ns, 1),
                "device_ns": int(launched["dur_ns"].sum()),
                "kernels": len(launched),
                "mean_kernel_ns": float(launched["dur_ns"].mean())
                if len(launched)
                else float("nan"),
            }
        )
    return pd.DataFrame(rows)


def threads_of_the_loop(calls: pd.DataFrame) -> pd.DataFrame:
    """Calls of the threads that do the framework's work."""
    thread = ["recording", "pid", "tid"]
    working = calls[calls["kind"] != "python_calls"][thread].drop_duplicates()
    return calls.merge(working, on=thread)


def phase_time(calls: pd.DataFrame, code: int) -> Union:
    """When any thread is in a phase, without calls of another phase inside on that thread.

    A job is in *other* only while none of its threads is in a phase of a name: the thread that
    called ``backward()`` waits for autograd's, and is in nothing else meanwhile.
    """
    if code != _OTHER:
        return _own_time(calls, code)
    parts = [
        minus(_own_time(rows, code), merged([_own_time(rows, named) for named in range(_OTHER)]))
        for _, rows in calls.groupby("recording")
    ]
    return merged(parts)


def _own_time(calls: pd.DataFrame, code: int) -> Union:
    parts = [
        minus(
            union_of(rows[rows["phase"] == code]),
            union_of(rows[(rows["phase"] != code) & (rows["caller_phase"] == code)]),
        )
        for _, rows in calls.groupby(["recording", "pid", "tid"], observed=True)
    ]
    return merged(parts)


def work_with_phase(session: Session, calls: pd.DataFrame) -> pd.DataFrame:
    """Device work with the phase of its launch; where that is unknown, of its operator."""
    work = session.table("kernels")[["recording", "ts_ns", "dur_ns", "correlation", "external_id"]]
    work = work[work["recording"].isin(used_recordings(session))]
    by_event = calls[["recording", "event", "phase"]]
    for table, key in (("launches", "correlation"), ("operators", "external_id")):
        source = session.table(table)
        source = source[source[key].notna()].drop_duplicates(["recording", key])
        source = source[["recording", "event", key]].merge(by_event, on=["recording", "event"])
        work = work.merge(
            source[["recording", key, "phase"]].rename(columns={"phase": f"phase_of_{table}"}),
            on=["recording", key],
            how="left",
        )
    phase = work["phase_of_launches"].fillna(work["phase_of_operators"]).fillna(_OTHER)
    return work.assign(phase=phase.astype("int64"))
