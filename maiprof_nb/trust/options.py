"""What the profiler was asked for: missing all the same, or paid for in time."""

from __future__ import annotations

import numpy as np

from maiprof_nb import units
from maiprof_nb.analysis._intervals import union
from maiprof_nb.trust.rule import Result, failed, judged, not_applicable, passed, rule
from maiprof_nb.trust.trace import Trace, examples

_SLOWING = ("with_stack", "record_shapes", "profile_memory", "with_flops", "with_modules")
_OVERHEAD_SHARE = 0.01
_HOST = (
    "operator-times",
    "phases",
    "steps",
    "gaps",
    "gpu-utilisation",
    "breakdown",
    "python-in-gaps",
)


@rule(
    "stacks-missing",
    of="trace",
    title="stacks were asked for, but none are in the trace",
    remedy="Pass experimental_config=torch._C._profiler._ExperimentalConfig(verbose=True), or "
    "sample the process with py-spy",
    prevents=("python-in-gaps",),
    reduces=("phases",),
)
def stacks_missing(trace: Trace) -> Result:
    """`with_stack` was on and the trace holds operators, but no Python function."""
    if not trace.recording.meta.get("with_stack"):
        return not_applicable("stacks were not asked for")
    if trace.recording.table("operators").empty:
        return not_applicable("the trace holds no operators")
    if len(trace.recording.table("python_calls")):
        return passed()
    return failed("Stacks were asked for (with_stack), but the trace holds no Python functions.")


@rule(
    "shapes-missing",
    of="trace",
    title="shapes were asked for, but none are in the trace",
    remedy="Record again with record_shapes=True and check that the tool which rewrote the file "
    "keeps the args of events",
    says=("operator-times", "operator-device-times"),
)
def shapes_missing(trace: Trace) -> Result:
    """`record_shapes` was on, but no operator states the shapes of its inputs."""
    if not trace.recording.meta.get("record_shapes"):
        return not_applicable("shapes were not asked for")
    operators = trace.recording.table("operators")
    if operators.empty:
        return not_applicable("the trace holds no operators")
    if operators["input_dims"].notna().any():
        return passed()
    return failed("Shapes were asked for (record_shapes), but no operator states any.")


@rule(
    "profiler-overhead",
    of="trace",
    title="the profiler slowed the host",
    remedy="Compare with runs profiled in the same way only, or record without these options",
    reduces=_HOST,
)
def profiler_overhead(trace: Trace) -> Result:
    """Options that cost time with every operator were on: stacks, shapes, memory, flops, modules.

    Many short operators are slowed more than few long ones, and gaps grow with them.
    """
    if not sum(trace.recording.events.values()):
        return not_applicable("the trace holds no events")
    on = [option for option in sorted(_SLOWING) if trace.recording.meta.get(option)]
    if not on:
        return passed()
    return failed(
        f"Recorded with {', '.join(on)}: this slows the host, many short operators more than few "
        "long ones. Compare with other profiled runs only.",
        len(on),
    )


@rule(
    "overhead-recorded",
    of="trace",
    title="the profiler's own work takes a part of the time",
    remedy="Select a window without it, or record with more warm-up",
    reduces=_HOST,
)
def overhead_recorded(trace: Trace) -> Result:
    """`overhead` events (CUPTI's buffers, instrumentation, lazy loading) fill more than 1 %."""
    other = trace.recording.table("other_events")
    rows = other[
        (other["category"] == "overhead") & other["dur_ns"].notna() & other["ts_ns"].notna()
    ]
    if rows.empty:
        return not_applicable("the trace records no overhead of the profiler")
    start = rows["ts_ns"].to_numpy(np.int64)
    total = union(start, start + rows["dur_ns"].to_numpy(np.int64)).length_ns
    share = total / max(trace.recording.span.dur_ns, 1)
    return judged(
        len(rows),
        share,
        _OVERHEAD_SHARE,
        lambda: (
            f"The profiler's own work takes {units.duration(total)}, {units.percent(share)} of the "
            f"recording ({examples(rows['name'])})."
        ),
    )
