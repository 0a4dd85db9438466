"""Code is compiled again in the middle of the loop."""

from __future__ import annotations

import numpy as np

from maiprof_nb import units
from maiprof_nb.analysis._by_step import step_rows
from maiprof_nb.analysis._compilation import COMPILING
from maiprof_nb.analysis._intervals import union
from maiprof_nb.analysis.host_events import host_events_named
from maiprof_nb.analysis.steps import figure_window, steps
from maiprof_nb.findings._wording import times
from maiprof_nb.findings.rule import Answer, Found, NotApplicable, Passed, Rule, severity_of
from maiprof_nb.findings.rules._worst import event_rows
from maiprof_nb.session import Session


def ask(session: Session) -> Answer:
    """Compilations in steps after the first recorded one, and the host time they take.

    The loop waits for them whether or not the device still has work; the cost is the time with
    a compilation on any thread of the rank that has most of it.
    """
    marks = steps(session)
    sizes = marks.groupby("recording")["step"].transform("size")
    marks = marks[sizes > 1].reset_index(drop=True)
    if marks.empty:
        return NotApplicable(
            "Fewer than two steps were recorded, and the first may compile. Call prof.step() after "
            "each step and record several."
        )
    events = host_events_named(session, COMPILING)
    row = step_rows(
        marks, events["recording"].to_numpy(np.int64), events["ts_ns"].to_numpy(np.int64)
    )
    first = marks.groupby("recording")["ts_ns"].idxmin().to_numpy()
    late = events[(row >= 0) & ~np.isin(row, first)].assign(
        step=marks["step"].to_numpy(np.int64)[row[(row >= 0) & ~np.isin(row, first)]]
    )
    if late.empty:
        most = int(sizes.max())
        return Passed(f"Nothing was compiled after the first of {most} recorded steps.")
    costs = {}
    for recording, rows in late.groupby("recording"):
        start = rows["ts_ns"].to_numpy(np.int64)
        costs[recording] = union(start, start + rows["dur_ns"].to_numpy(np.int64)).length_ns
    worst = max(costs, key=lambda recording: costs[recording])
    mine = late[late["recording"] == worst]
    affected = mine["step"].nunique()
    return Found(
        title=f"{times(len(mine), 'compilation')} in {times(affected, 'step')} after the first "
        f"took {units.duration(costs[worst])}",
        severity=severity_of(costs[worst] / max(figure_window(session).window.dur_ns, 1)),
        cost_ns=costs[worst],
        evidence=event_rows(
            mine.sort_values("dur_ns", ascending=False, kind="stable"), name="name", step="step"
        ),
    )


RULE = Rule(
    id="recompilation",
    question="Is code compiled again in the middle of the loop?",
    figures=("steps", "operator-times"),
    view="phases",
    advice="Run with TORCH_LOGS=recompiles to see which guard failed; then keep shapes constant "
    "(pad, drop_last=True), or pass dynamic=True to torch.compile.",
    change="1 line",
    ask=ask,
)
