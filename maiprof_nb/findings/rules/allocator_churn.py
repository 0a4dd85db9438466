"""Memory is taken from the driver and given back in the middle of the loop."""

from __future__ import annotations

from maiprof_nb import units
from maiprof_nb.analysis.allocator_calls import driver_calls, segment_turnover
from maiprof_nb.analysis.host_events import stalled_ns
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.findings._wording import times
from maiprof_nb.findings.rule import Answer, Found, NotApplicable, Passed, Rule, severity_of
from maiprof_nb.findings.rules._worst import event_rows
from maiprof_nb.findings.rules.allocator_thrash import FOR_ROOM, FULL, LEAST_PAIRS
from maiprof_nb.session import Session

OFTEN_A_STEP = 1.0  # calls: a warm cache makes none, and each may wait for the device
WORTH_SHARE = 0.01  # of the window: one line of code wins it back


def ask(session: Session) -> Answer:
    """Calls such as cudaMalloc and cudaFree after the first step, segments given back and retaken.

    The caching allocator needs neither once it is warm. Found with a call or more a step, with
    1 % of the window in such calls while the device is idle, or where the snapshot shows memory
    given back to the driver and taken again; where that goes on and on it is left to
    `allocator-thrash`. The cost is that idle time, or without device work that of the calls.
    """
    calls = driver_calls(session)
    turnover = segment_turnover(session)
    if calls is None and turnover is None:
        return NotApplicable(
            "Neither steps with calls of the CUDA runtime nor an allocator's log tell the warm-up "
            "from the loop. Call prof.step() after each step, or record a snapshot with its log "
            "(torch.cuda.memory._record_memory_history())."
        )
    said, evidence, cost, size, often = [], [], None, None, False
    if calls is not None and len(calls.rows):
        cost = stalled_ns(session, calls.rows)
        share = cost / max(figure_window(session).window.dur_ns, 1)
        often = calls.a_step >= OFTEN_A_STEP or share >= WORTH_SHARE
        said.append(
            f"{calls.a_step:.3g} calls a step to take memory from the driver or give it back "
            f"({units.duration(int(calls.rows['dur_ns'].sum()))} in all)"
        )
        evidence += event_rows(
            calls.rows.sort_values("dur_ns", ascending=False, kind="stable"),
            "launches",
            call="name",
            line="line",
        )
    if turnover is not None and turnover.returned:
        size = turnover.returned_bytes
        thrash = min(turnover.returned, turnover.retaken) >= LEAST_PAIRS
        often = often or (turnover.retaken > 0 and not thrash)
        room = FOR_ROOM if turnover.for_room else ""
        said.append(
            f"{times(turnover.returned, 'segment')} ({units.size(size)}) given back to the driver"
            f"{room} and {units.count(turnover.retaken)} taken again"
            f"{' (see allocator-thrash)' if thrash else ''}"
        )
        evidence += turnover.evidence
    if not said:
        return Passed("After the warm-up no memory is taken from the driver and given back.")
    figure = f"{'; '.join(said)}"
    if not often:
        return Passed(f"After the warm-up: {figure}.")
    share = (cost or 0) / max(figure_window(session).window.dur_ns, 1)
    return Found(
        title=f"After the warm-up: {figure}",
        severity=severity_of(share),
        cost_ns=cost,
        size_bytes=size,
        evidence=evidence,
        advice=FULL if cost is None and turnover is not None and turnover.for_room else None,
    )


RULE = Rule(
    id="allocator-churn",
    question="Is memory taken from the driver again and again?",
    figures=("gaps", "steps"),
    view="memory",
    advice="Remove torch.cuda.empty_cache() from the loop; where shapes vary, set "
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; keep pinned buffers instead of making them "
    "anew.",
    change="1 line",
    ask=ask,
)
