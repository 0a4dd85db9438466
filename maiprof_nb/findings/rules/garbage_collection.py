"""Python's garbage collector stops the loop."""

from __future__ import annotations

from maiprof_nb import units
from maiprof_nb.analysis._garbage import COLLECTION
from maiprof_nb.analysis.device_activity import activities
from maiprof_nb.analysis.host_events import host_events_named, stalled_ns
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.findings._wording import times
from maiprof_nb.findings.rule import Answer, Found, NotApplicable, Passed, Rule, severity_of
from maiprof_nb.findings.rules._worst import event_rows
from maiprof_nb.session import Session

WORTH_SHARE = 0.01  # of the window: two lines of code win it back


def ask(session: Session) -> Answer:
    """Time of collections during which the device is idle; they stop every Python thread.

    Without device work it is the time of the collections: the loop itself stands still.
    """
    events = host_events_named(session, COLLECTION)
    if events.empty:
        return NotApplicable(
            "No garbage collection was recorded. Calls of gc.collect() are seen with "
            "with_stack=True, automatic ones with, besides, experimental_config="
            "torch._C._profiler._ExperimentalConfig(record_python_gc_info=True)."
        )
    cost = stalled_ns(session, events)
    share = cost / max(figure_window(session).window.dur_ns, 1)
    lasting = units.duration(int(events["dur_ns"].sum()))
    waiting = "the GPU idle" if activities(session) else "the loop stopped"
    figure = (
        f"{times(len(events), 'garbage collection')} took {lasting}, {units.duration(cost)} of it "
        f"({units.percent(share)} of the time) with {waiting}"
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
