"""Python's garbage collector stops the loop."""

from __future__ import annotations

import re

from maiprof_nb import units
from maiprof_nb.analysis.host_events import host_events_named, time_in_gaps
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.findings.rule import Answer, Found, NotApplicable, Passed, Rule, severity_of
from maiprof_nb.findings.rules._worst import event_rows, times
from maiprof_nb.session import Session

WORTH_SHARE = 0.01  # of the window: two lines of code win it back
_COLLECTION = re.compile(
    r"^(?:Python\s)?gc$|\bgc\.collect\b|^<built-in function collect>$|garbage.?collect",
    re.IGNORECASE,
)


def ask(session: Session) -> Answer:
    """Time of collections during which the device is idle; they stop every Python thread."""
    events = host_events_named(session, _COLLECTION)
    if events.empty:
        return NotApplicable(
            "No garbage collection was recorded. Calls of gc.collect() are seen with "
            "with_stack=True, automatic ones with experimental_config="
            "torch._C._profiler._ExperimentalConfig(record_python_gc_info=True)."
        )
    worst = time_in_gaps(session, events)
    cost = int(worst["in_gaps_ns"].max()) if len(worst) else 0
    share = cost / max(figure_window(session).window.dur_ns, 1)
    lasting = units.duration(int(events["dur_ns"].sum()))
    figure = (
        f"{times(len(events), 'garbage collection')} took {lasting}, {units.duration(cost)} of it "
        f"({units.percent(share)} of the time) with the GPU idle"
    )
    if share < WORTH_SHARE:
        return Passed(f"{figure}.")
    return Found(
        title=figure,
        severity=severity_of(share),
        cost_ns=cost,
        evidence=event_rows(
            events.sort_values("dur_ns", ascending=False, kind="stable"), name="name"
        ),
    )


RULE = Rule(
    id="garbage-collection",
    question="Does Python's garbage collector stop the loop?",
    figures=("gaps", "python-in-gaps"),
    view="gaps",
    advice="Call gc.freeze() after the model is built and gc.disable() before the loop, and "
    "gc.collect() where it disturbs nobody (after a checkpoint).",
    change="2 lines",
    ask=ask,
)
