"""Where the host waits for a device, and for what."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._by_step import step_rows
from maiprof_nb.analysis._call_origins import OF_CALL, OF_FORWARD, users_around
from maiprof_nb.analysis._call_sites import farthest
from maiprof_nb.analysis._host_calls import every_call
from maiprof_nb.analysis._nesting import nearest_code
from maiprof_nb.analysis._remember import remembered
from maiprof_nb.analysis.steps import figure_window, steps
from maiprof_nb.session import Session

Ints = npt.NDArray[np.int64]

# A copy between pageable memory and the device waits too; ROCm names that call apart.
_WAITS = (
    r"^(?:cuda|hip)(?:Stream|Device|Event)Synchronize"
    r"|^(?:cuda|hip)Memcpy(?!\w*Async)(?!\w*Peer)(?:\w*)"
    r"|^cu(?:Stream|Ctx|Event)Synchronize"
)
_COLUMNS = ["recording", "rank", "event", "name", "ts_ns", "dur_ns", "pid", "tid"]
_TEXT = dict.fromkeys(("name", "pid", "tid"), "str")


@remembered
def synchronisations(session: Session) -> pd.DataFrame:
    """Every call in which the host waited for a device, in the window of the figures.

    Returns
    -------
    DataFrame
        Longest first: ``recording``, ``rank``, ``event`` (of the table ``launches``),
        ``call`` (e.g. ``cudaStreamSynchronize``), ``ts_ns``, ``dur_ns`` (the wait; the host
        loses it, the device does not), ``pid``, ``tid``, ``operator`` (the outermost around
        it; missing for a call of the user's own), ``operator_event``, ``line`` (the user's
        innermost Python function around it, or else the innermost of all, if stacks were
        recorded), ``line_of`` (call, or forward where the wait is in the backward pass and the
        line is that of the forward operator) and ``step``.

    Notes
    -----
    A device is synchronised by the profiler when it starts and stops: such waits before the
    first and after the last operator are left out.
    """
    waits = _waits(session)
    calls = every_call(session)
    keys = calls.loc[calls["kind"] == "launch", ["recording", "event"]]
    at = waits[["recording", "event"]].merge(keys.assign(row=keys.index), how="left")["row"]
    row = at.to_numpy(np.int64)
    number = np.arange(len(calls))
    engine = [text.startswith("autograd::engine") for text in calls["name"].cat.categories]
    of_engine = np.array([*engine, False], dtype=bool)[calls["name"].cat.codes.to_numpy()]
    is_operator = (calls["kind"] == "operator").to_numpy() & ~of_engine
    python = np.where((calls["kind"] == "python").to_numpy(), number, -1)
    parent = calls["parent"].to_numpy(np.int64)
    operator = farthest(np.where(is_operator, number, -1), parent)[row]
    users = users_around(calls)
    line = np.where(users.row >= 0, users.row, nearest_code(python, parent))[row]
    whose = np.array([OF_CALL, OF_FORWARD, None], dtype=object)
    marks = steps(session)
    step = step_rows(marks, waits["recording"].to_numpy(np.int64), waits["ts_ns"].to_numpy())
    found = waits.rename(columns={"name": "call"}).assign(
        operator=_at(calls["name"], operator),
        operator_event=pd.array(_at(calls["event"], operator), dtype="Int64"),
        line=_at(calls["name"], line),
        line_of=whose[np.where(line < 0, 2, users.of_forward[row])],
        step=pd.array(_at(marks["step"], step), dtype="Int64"),
    )
    return found.sort_values("dur_ns", ascending=False, ignore_index=True, kind="stable")


def _waits(session: Session) -> pd.DataFrame:
    """Rows of `launches` that wait, in the window, between first and last operator."""
    window = figure_window(session).window
    launches = session.table("launches")
    names = launches["name"].cat.categories
    waiting = launches["name"].isin(names[names.str.contains(_WAITS)])
    inside = (launches["ts_ns"] < window.end_ns) & (
        launches["ts_ns"] + launches["dur_ns"] > window.start_ns
    )
    waits = launches[waiting & inside][_COLUMNS].astype(_TEXT)
    operators = session.table("operators")
    span = operators.assign(end_ns=operators["ts_ns"] + operators["dur_ns"]).groupby("recording")
    first = waits["recording"].map(span["ts_ns"].min())
    last = waits["recording"].map(span["end_ns"].max())
    of_the_job = first.isna() | ((waits["ts_ns"] >= first) & (waits["ts_ns"] < last))
    return waits[of_the_job].reset_index(drop=True)


def _at(values: pd.Series, rows: Ints) -> list[object]:
    """Values at these rows; None for -1."""
    texts = values.to_numpy(object)
    return [texts[row] if row >= 0 else None for row in rows]
