"""Which Python functions cost how much."""

from __future__ import annotations

import pandas as pd

from maiprof_nb.analysis._host_calls import used_recordings
from maiprof_nb.analysis.operator_ranking import calls_with_python, rank_calls
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow


def python_ranking(session: Session, *, window: TimeWindow | None = None) -> pd.DataFrame:
    """Python functions, ranked by their own time.

    Parameters
    ----------
    session : Session
        Ranks and window that are selected count.
    window : TimeWindow, optional
        Only calls that overlap it; each counts whole.

    Returns
    -------
    DataFrame
        The columns of `operator_ranking`, one row a function, all of kind ``python``.
        ``self_ns`` is without the Python functions, operators, ranges and runtime calls it
        called; ``self_share`` is of the time of all Python functions.

    Notes
    -----
    Recording every Python call slows Python down: the shares say where to look, not how long it
    takes without the profiler. Functions of sampled stacks count as long as samples saw them,
    and only where no trace of the session holds Python calls of its own.
    """
    calls = calls_with_python(session)
    wanted = (calls["kind"] == "python") & calls["recording"].isin(used_recordings(session))
    if window is not None:
        end = calls["ts_ns"] + calls["dur_ns"]
        wanted &= (calls["ts_ns"] < window.end_ns) & (end > window.start_ns)
    return rank_calls(calls[wanted])
