"""The allocator gives segments back and takes them again in steady state."""

from __future__ import annotations

import re

from maiprof_nb import units
from maiprof_nb.analysis.allocator_calls import segment_turnover
from maiprof_nb.findings.rule import Answer, Found, NotApplicable, Passed, Rule
from maiprof_nb.findings.rules._memory import no_snapshot
from maiprof_nb.session import Session

LEAST_PAIRS = 10  # segments back and again: fewer is one clean-up between phases
FOR_ROOM = " (apparently to make room on a full device)"
EMPTIED = re.compile(r"empty_?cache", re.IGNORECASE)


def ask(session: Session) -> Answer:
    """Segments given back after the warm-up and taken again, in a snapshot's log.

    The turnover is that of `allocator-churn`, which also sees calls in traces and says what they
    cost in time; this rule says how much memory goes round and who sends it: a call of
    empty_cache, or the allocator itself, which gives its cache back when the device is full
    (then a new segment follows at once, and with it more would have been reserved than ever was).
    """
    turnover = segment_turnover(session)
    if turnover is None:
        return NotApplicable(no_snapshot(session))
    pairs = min(turnover.returned, turnover.retaken)
    if pairs < LEAST_PAIRS:
        return Passed(f"After the warm-up {units.count(pairs)} segments go back and come again.")
    log = session.table("allocator_events")
    back = log[log["action"].isin(["segment_free", "segment_unmap"])]
    stacks = session.table("stacks")
    emptying = stacks[stacks["frames"].astype(object).str.contains(EMPTIED).to_numpy(bool)]
    keys = back[["recording", "stack"]].merge(emptying[["recording", "stack"]])
    told = back["stack"].notna().any()
    by_call = len(keys) > len(back) / 2
    full = turnover.for_room and not by_call
    sender = " by empty_cache" if by_call else " by the allocator itself" if told or full else ""
    sender += FOR_ROOM if full else ""
    return Found(
        title=f"After the warm-up {units.count(turnover.returned)} segments "
        f"({units.size(turnover.returned_bytes)}) are given back{sender} and "
        f"{units.count(turnover.retaken)} taken again",
        severity="high" if pairs >= 10 * LEAST_PAIRS else "medium",
        size_bytes=turnover.returned_bytes,
        evidence=turnover.evidence,
        advice=_EMPTY_CACHE if by_call else FULL if full else None,
    )


_EMPTY_CACHE = "Remove torch.cuda.empty_cache() from the loop."
FULL = (
    "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True and lower the peak: each time the device "
    "is full the allocator gives its cache back and takes it again, and every cudaFree waits for "
    "the device."
)
RULE = Rule(
    id="allocator-thrash",
    question="Do segments go back to the driver and come again in the loop?",
    figures=("memory-curve",),
    view="memory",
    advice=f"{FULL} Remove torch.cuda.empty_cache() from the loop, if it is there.",
    change="1 line",
    ask=ask,
)
