"""Host calls without their device work, and device work without its host call."""

from __future__ import annotations

import numpy as np

from maiprof_nb import units
from maiprof_nb.trust.rule import Result, failed, judged, not_applicable, passed, rule
from maiprof_nb.trust.trace import Trace, examples

LOST_SHARE = 0.01
_FIRST = 3  # as many launches in a row without work are no accident
_LATER_SHARE = 0.5  # of the later launches must have work, or nothing was lost at the start only
_NO_WORK = "the trace holds no device work"
_DEVICE = ("gpu-utilisation", "breakdown", "gaps", "operator-device-times")
_CUPTI = (
    "Record with ProfilerActivity.CUDA and check that CUPTI is free (another profiler or DCGM "
    "may hold it)"
)


@rule(
    "no-device-work",
    of="trace",
    title="device work was launched, but none is in the trace",
    remedy=_CUPTI,
    prevents=(*_DEVICE, "python-in-gaps"),
    reduces=("phases", "steps"),
)
def no_device_work(trace: Trace) -> Result:
    """The host launched kernels and the trace holds not one: nothing says when devices worked.

    That is no idle GPU. Graph captures, which launch nothing, do not count.
    """
    launched = int(trace.starting.sum())
    if not launched and not len(trace.work):
        return not_applicable("nothing was launched")
    if len(trace.work):
        return passed()
    return failed(
        f"The host launched device work {units.count(launched)} times, but the trace holds none "
        "of it: this does not say that the GPU was idle.",
        launched,
        1.0,
    )


@rule(
    "launches-without-work",
    of="trace",
    title="launches whose device work is missing",
    remedy="Record again with a longer warm-up of the profiler; let the device finish "
    "(torch.cuda.synchronize()) before the window ends",
    reduces=(*_DEVICE, "phases", "python-in-gaps"),
)
def without_work(trace: Trace) -> Result:
    """More than 1 % of the calls that must start device work have none with their correlation.

    Kernel launches of every runtime (`cudaLaunchKernel`, `cudaLaunchKernelExC`,
    `cuLaunchKernel`, `hipLaunchKernel`, `hipExtModuleLaunchKernel`, ...), graph launches and
    asynchronous copies count; a graph launch has its work if any kernel carries its correlation.
    Calls inside a stream capture only record a graph and do not count, nor do memsets, of which
    some leave no record in sound traces too.
    """
    if not len(trace.work):
        return not_applicable(_NO_WORK)
    starting = int(trace.starting.sum())
    if not starting:
        return not_applicable("the trace holds no call that must start device work")
    lost = trace.starting & ~trace.has_work
    count = int(lost.sum())
    return judged(
        count,
        count / starting,
        LOST_SHARE,
        lambda: (
            f"{units.count(count)} of {units.count(starting)} launches have no device work in the "
            f"trace ({examples(trace.launches['name'][lost])}): the device did more than is shown."
        ),
    )


@rule(
    "work-without-launch",
    of="trace",
    title="device work whose launch is missing",
    remedy="Record with ProfilerActivity.CPU and a longer warm-up, so that work launched before "
    "the window has ended when it begins",
    reduces=("operator-device-times", "phases", "steps", "gaps"),
)
def without_launch(trace: Trace) -> Result:
    """More than 1 % of the device work has no host call with its correlation.

    It was launched before the window began, or the call was lost. It counts for the device,
    but for no operator, phase or step, and what the host did before a gap ended is unknown.
    """
    if not len(trace.work):
        return not_applicable(_NO_WORK)
    if not len(trace.launches):
        return not_applicable("the trace holds no launches at all")
    lost = ~trace.has_launch
    count = int(lost.sum())
    kernels = int(lost[trace.work["kind"].isin(("compute", "communication")).to_numpy()].sum())
    return judged(
        count,
        count / len(lost),
        LOST_SHARE,
        lambda: (
            f"{units.count(count)} of {units.count(len(lost))} pieces of device work have no "
            f"launch in the trace ({units.count(kernels)} kernels among them; cut at the window's "
            "edge, or lost); phases and operators miss them."
        ),
    )


@rule(
    "no-links",
    of="trace",
    title="no device work can be tied to the host",
    remedy="Record again with ProfilerActivity.CPU and ProfilerActivity.CUDA together",
    prevents=("operator-device-times",),
    reduces=("phases", "steps", "python-in-gaps"),
)
def no_links(trace: Trace) -> Result:
    """Not one piece of device work shares a correlation or external id with the host."""
    if not len(trace.work):
        return not_applicable(_NO_WORK)
    if trace.has_launch.any():
        return passed()
    operators = trace.recording.table("operators")["external_id"].dropna()
    if trace.work["external_id"].dropna().isin(operators).any():
        return passed()
    return failed(
        "Nothing ties the device work to the host: neither its launches nor its operators are "
        "in the trace.",
        len(trace.work),
        1.0,
    )


@rule(
    "work-lost-at-start",
    of="trace",
    title="device work lost at the start of the recording",
    remedy="Let the profiler warm up for some steps (schedule(warmup=...)), or select a window "
    "after the loss",
    reduces=(*_DEVICE, "phases", "steps"),
)
def lost_at_start(trace: Trace) -> Result:
    """The first launches of the recording have no device work, while later ones do.

    The profiler drops the first device records of a session; the longer the GPU had been idle
    before, the more of them.
    """
    if not len(trace.work):
        return not_applicable(_NO_WORK)
    at = trace.launches["ts_ns"].to_numpy(np.int64)[trace.starting]
    if len(at) <= _FIRST:
        return not_applicable("there are too few launches to tell")
    order = np.argsort(at, kind="stable")
    has_work = trace.has_work[trace.starting][order]
    first = int(np.argmax(has_work))  # 0 also where none has any: another rule says that
    if first < _FIRST or has_work[first:].mean() < _LATER_SHARE:
        return passed()
    begin = at[order[0]]
    return failed(
        f"The first {units.count(first)} launches, over "
        f"{units.duration(float(at[order[first]] - begin))}, have no device work although later "
        "ones do: it was lost at the start of the recording.",
        first,
        first / len(has_work),
    )
