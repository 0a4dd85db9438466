"""Free memory lies in holes between live blocks, where larger requests do not fit."""

from __future__ import annotations

from typing import Any

import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis._device_logs import snapshot_logs
from maiprof_nb.analysis.active_memory import MemoryLog
from maiprof_nb.analysis.stranded_memory import (
    MOST_REQUESTS,
    ORDER,
    Moment,
    Remedy,
    StrandedMemory,
    holders,
    remedies,
    stranded_memory,
)
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.findings._wording import times
from maiprof_nb.findings.rule import Answer, Found, NotApplicable, Passed, Rule, severity_of
from maiprof_nb.findings.rules._memory import holder_rows, named, no_snapshot, on
from maiprof_nb.session import Session

STRANDED_SHARE = 0.05  # of what is reserved, free but in segments with live blocks
WHOLE_SHARE = 0.5  # of the stranded bytes in one hole: then a large request still fits
LEAST_BYTES = 134_217_728  # 128 MiB: less is the allocator's own rounding to segments


def ask(session: Session) -> Answer:
    """Free bytes in segments that also hold live blocks, at the peak and at the end of the log.

    Found from 5 % of what is reserved at one of these moments, unless one hole has half of them;
    the worst moment is told beside them, but between peaks holes are filled again. Such bytes can
    go back to the driver only once every block of their segment is freed. Wholly free segments
    are no fragmentation; `over-reservation` speaks of them. What settings and another order would
    free is found by replaying the log through the model of the allocator, where the model repeats
    the real log exactly. In a selected window its peak, its end and its worst moment count.
    """
    found, reason = [], no_snapshot(session)
    for log in snapshot_logs(session):
        try:
            stranded = stranded_memory(session, log.device)
        except NotAnswerableError as problem:
            reason = problem.sentence
            continue
        if stranded is not None and stranded.end.reserved_bytes + stranded.peak.reserved_bytes:
            found.append((log, stranded))
    if not found:
        return NotApplicable(reason)
    log, stranded = max(found, key=lambda one: _judged(one[1]).stranded_bytes)
    return _of_device(session, log, stranded)


def _judged(stranded: StrandedMemory) -> Moment:
    """Of the peak and the end the one with more stranded, one with holes rather than one hole."""
    return max((stranded.peak, stranded.end), key=lambda one: (_torn(one), one.stranded_bytes))


def _torn(moment: Moment) -> bool:
    whole = moment.largest_hole_bytes >= WHOLE_SHARE * moment.stranded_bytes
    enough = moment.share >= STRANDED_SHARE and moment.stranded_bytes >= LEAST_BYTES
    return enough and not whole


def _of_device(session: Session, log: MemoryLog, stranded: StrandedMemory) -> Answer:
    moment = _judged(stranded)
    when, others = "at the end", ""
    if stranded.peak.state != stranded.end.state:
        names = ("at the end", stranded.end), ("at the peak", stranded.peak)
        when, (beside, other) = ("at the peak", names[0]) if moment is stranded.peak else (
            "at the end", names[1]
        )  # fmt: skip
        others = (
            f"; {beside} {units.size(other.stranded_bytes)}, at worst "
            f"{units.size(stranded.worst.stranded_bytes)}"
        )
    figure = (
        f"{units.size(moment.stranded_bytes)} ({units.percent(moment.share)} of "
        f"{units.size(moment.reserved_bytes)} reserved) are free in "
        f"{times(moment.holes, 'hole')} between live blocks {when}{on(session, log)}, the largest "
        f"{units.size(moment.largest_hole_bytes)}{others}"
    )
    if not _torn(moment):
        return Passed(f"{figure}.")
    held = holders(session, log.device, moment)
    requests, tried = remedies(session, log.device, moment)
    return Found(
        title=f"{figure}{_most(held)}",
        severity=severity_of(moment.share),
        size_bytes=moment.stranded_bytes,
        evidence=[
            _row(log, moment),
            *holder_rows(log, held),
            *(_remedy_row(log, one, requests) for one in tried),
        ],
        advice=_advice(stranded, moment, held, requests, tried),
    )


def _most(held: pd.DataFrame) -> str:
    if held.empty:
        return ""
    first = held.iloc[0]
    return (
        f"; {times(int(first['blocks']), 'block')} of {named(first['label'])} hold "
        f"{units.size(int(first['held_bytes']))} of them open"
    )


def _advice(
    stranded: StrandedMemory,
    moment: Moment,
    held: pd.DataFrame,
    requests: int,
    tried: list[Remedy],
) -> str:
    edit = _EXPANDABLE if stranded.expandable else RULE.advice
    if not tried:
        why = (
            "The log holds no requests to replay"
            if not requests
            else "The log is too long to replay here"
            if requests > MOST_REQUESTS
            else "The model of the allocator does not repeat this log exactly"
        )
        return f"{edit} {why}, so what that would free is not known."
    line = "" if held.empty else f" ({named(held.iloc[0]['label'])} and its like)"
    said = [_gain(one, line) for one in tried]
    return (
        f"{edit} Replayed in a model that gives all {units.count(requests)} requests of "
        f"this log their real address, {'; '.join(said)}. garbage_collection_threshold frees none "
        f"of it: it returns wholly free segments only ({units.size(moment.cached_bytes)} then)."
    )


def _gain(one: Remedy, line: str) -> str:
    name = f"{one.setting}{line}" if one.setting == ORDER else one.setting
    least, most = one.least_freed_bytes, one.most_freed_bytes
    if most <= 0:
        return f"{name} frees nothing"
    if least == most or units.size(max(least, 0)) == units.size(most):
        return f"{name} frees {units.size(most)}"
    return f"{name} frees {units.size(max(least, 0))} to {units.size(most)}"


def _row(log: MemoryLog, moment: Moment) -> dict[str, Any]:
    return {
        "table": "segments",
        "recording": log.device.recording,
        "device": log.device.device,
        "ts_ns": moment.ts_ns,
        "reserved_bytes": moment.reserved_bytes,
        "allocated_bytes": moment.allocated_bytes,
        "stranded_bytes": moment.stranded_bytes,
        "holes": moment.holes,
        "largest_hole_bytes": moment.largest_hole_bytes,
        "cached_bytes": moment.cached_bytes,
    }


def _remedy_row(log: MemoryLog, one: Remedy, requests: int) -> dict[str, Any]:
    return {
        "table": "allocator_events",
        "recording": log.device.recording,
        "device": log.device.device,
        "setting": one.setting,
        "least_freed_bytes": one.least_freed_bytes,
        "most_freed_bytes": one.most_freed_bytes,
        "requests": requests,
        "same_place": requests,
    }


_EXPANDABLE = (
    "Segments are expandable already: make what lives long (parameters, optimizer state) before "
    "what lives short, and keep shapes the same from step to step."
)
RULE = Rule(
    id="fragmentation",
    question="Is free memory cut into holes too small to use?",
    figures=("memory-curve",),
    view="memory",
    advice="Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, so that free pages can move to "
    "where a request needs them; or make what lives long before what lives short.",
    change="1 line",
    ask=ask,
)
