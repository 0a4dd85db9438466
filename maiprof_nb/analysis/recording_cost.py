"""What recording cost the host, estimated from the number of events.

The cost an event is a setting. ``OPERATOR_NS`` and ``PYTHON_NS`` are the upper ends of what
``benchmarks/profiler_cost.py`` measured (torch 2.13 on a CPU: 0.3 to 1.1 us an operator, more
with shapes, and 0.2 to 0.4 us a Python function); a call of the runtime, which also passes
CUPTI, was not measured and is taken like an operator.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from maiprof_nb.analysis._intervals import union
from maiprof_nb.analysis._remember import remembered
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.session import Session

OPERATOR_NS, LAUNCH_NS, PYTHON_NS = 1_000, 1_000, 400  # an event: measured, assumed, measured

_COSTS = {"operators": OPERATOR_NS, "launches": LAUNCH_NS, "python_calls": PYTHON_NS}
_KEYS = ["recording", "pid", "tid"]


@remembered
def recording_cost(session: Session) -> pd.DataFrame:
    """Events and their estimated cost on every host thread, in the window of the figures.

    Returns
    -------
    DataFrame
        Most expensive thread first: ``recording``, ``rank``, ``pid``, ``tid``, ``operators``,
        ``launches``, ``python_calls`` (numbers), ``operators_per_s``, ``launches_per_s``,
        ``python_per_s``, ``recorded_overhead_ns`` (``overhead`` events of the recording, of all
        its threads), ``cost_ns`` (the estimate, or the recorded overhead if that is more) and
        ``share`` (of the window).

    Notes
    -----
    An estimate in one direction only: it says when the host was surely slowed, not that it
    was not. Threads are not summed, as they are slowed side by side.
    """
    window = figure_window(session).window
    counts = [_counts(session, table) for table in _COSTS]
    found = pd.concat(counts, axis=1).fillna(0).astype("int64").reset_index()
    overhead = _overhead(session)
    known = found["recording"].map(overhead).fillna(0).astype("int64")
    estimate = sum(found[table] * cost for table, cost in _COSTS.items())
    ranks = [session.recordings[int(number)].rank for number in found["recording"]]
    seconds = max(window.dur_ns, 1) / 1e9
    found = found.assign(
        rank=pd.array(ranks, dtype="Int64"),
        operators_per_s=found["operators"] / seconds,
        launches_per_s=found["launches"] / seconds,
        python_per_s=found["python_calls"] / seconds,
        recorded_overhead_ns=known,
        cost_ns=np.maximum(estimate, known),
    )
    found["share"] = np.minimum(found["cost_ns"] / max(window.dur_ns, 1), 1.0)
    return found.sort_values("cost_ns", ascending=False, ignore_index=True, kind="stable")


def _counts(session: Session, table: str) -> pd.Series:
    window = figure_window(session).window
    rows = session.table(table)
    rows = rows[(rows["ts_ns"] >= window.start_ns) & (rows["ts_ns"] < window.end_ns)]
    sizes = rows.astype({"pid": "str", "tid": "str"}).groupby(_KEYS).size()
    return sizes.rename(table)


def _overhead(session: Session) -> dict[int, int]:
    """Time in `overhead` events by recording; moments in several of them count once."""
    window = figure_window(session).window
    rows = session.table("other_events")
    timed = rows["ts_ns"].notna() & rows["dur_ns"].notna()
    rows = rows[(rows["category"] == "overhead") & timed]
    found = {}
    for recording, mine in rows.groupby("recording"):
        start = mine["ts_ns"].to_numpy(np.int64)
        end = start + mine["dur_ns"].to_numpy(np.int64)
        inside = np.clip(start, window.start_ns, window.end_ns)
        found[int(recording)] = union(
            inside, np.clip(end, window.start_ns, window.end_ns)
        ).length_ns
    return found
