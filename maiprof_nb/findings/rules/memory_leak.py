"""The floor of the memory curve rises from cycle to cycle."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis._device_logs import device_logs
from maiprof_nb.analysis.device_size import device_size
from maiprof_nb.analysis.memory_categories import categories_of
from maiprof_nb.analysis.memory_cycles import MemoryCycles, cycles_of, survivors
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.findings.rule import Answer, Found, NotApplicable, Passed, Rule, severity_of
from maiprof_nb.findings.rules._memory import no_snapshot, on, size_a_cycle
from maiprof_nb.session import Session

LEAST_RISE = 0.005  # of the peak, over the log; less is noise of workspaces and caches
EXPLAINED = 0.5  # of the rise that lines leaving something in nearly every cycle must hold
FILLED_ONCE = ("parameters", "gradients", "optimizer state")  # by a first step, not a leak


def ask(session: Session) -> Answer:
    """Theil-Sen slope of the floors of at least 5 cycles after the warm-up.

    Found where the 95 % interval of the slope lies above zero, the floor still rises in the
    second half of the log, and half of the rise is held by lines that left something behind in
    at least 80 % of the cycles up to the end. What fills once (parameters, gradients, optimizer
    state) is no leak, and a key-value cache is said to be one. The severity is high only where
    steps were marked: cycles found by repetition may all lie in one step. Where such cycles
    leave more than half of their teeth standing while the lines pile up, memory never came down:
    a forward pass that keeps its activations looks the same, so the rule does not apply. In a
    selected window only its cycles count.
    """
    try:
        logs = device_logs(session)
    except NotAnswerableError:
        return NotApplicable(no_snapshot(session))
    answers: list[Answer] = []
    reasons = []
    for log in logs:
        try:
            answer = _of_device(session, cycles_of(session, log))
        except NotAnswerableError as problem:
            answer = NotApplicable(problem.sentence)
        if isinstance(answer, NotApplicable):
            reasons.append(answer.reason)
        else:
            answers.append(answer)
    found = [one for one in answers if isinstance(one, Found)]
    if found:
        return max(found, key=lambda one: one.size_bytes or 0)
    if answers:
        return answers[0]
    return NotApplicable(reasons[0] if reasons else no_snapshot(session))


def _of_device(session: Session, found: MemoryCycles) -> Answer:
    peak = int(found.log.allocated_bytes.max())
    slope = found.slope
    period = "step" if found.how == "steps" else "cycle"
    seen = f"over {len(found.steady)} {period}s{on(session, found.log)}"
    figure = (
        f"{size_a_cycle(slope.value)} a {period} (95 % interval {size_a_cycle(slope.low)} to "
        f"{size_a_cycle(slope.high)})"
    )
    if not found.rising or found.rise_bytes < LEAST_RISE * peak:
        if found.rising or slope.low <= 0:
            return Passed(f"The floor does not rise: {figure} {seen}.")
        return Passed(f"The floor rose, {figure}, but no longer does at the end, {seen}.")
    lines = survivors(found)
    lines = lines[lines["steady"] & ~_once(found, lines)]
    if lines["size_bytes"].sum() < EXPLAINED * found.rise_bytes:
        return Passed(
            f"The floor rises by {figure} {seen}, but no line leaves something behind in nearly "
            "every cycle up to the end."
        )
    pile = int(lines["first_cycle"].min()), int(lines["last_cycle"].max())
    if found.how != "steps" and found.piles_up(*pile):
        return NotApplicable(
            f"The floor rises only from cycle {pile[0]} to {pile[1]}{on(session, found.log)}, and "
            f"memory never comes down there: {lines.iloc[0]['label']} and others pile up in one "
            "pass, such as a forward pass that keeps activations for the backward pass. Record "
            "several steps, and mark them with prof.step() in a trace beside the snapshot."
        )
    worst = lines.iloc[0]
    caches = _categories(found, lines).eq("KV cache")
    if bool(caches.iloc[0]):
        return Passed(
            f"The floor rises by {figure} {seen}: the key-value cache made in {worst['label']} "
            "grows."
        )
    caveat = "" if found.how == "steps" else (
        " Cycles were found by repetition: if all of them lie in one step's forward pass, "
        "these are activations kept for its backward pass; mark steps with prof.step() to tell."
    )  # fmt: skip
    grown = int(lines["size_bytes"].sum())
    severity = severity_of(found.rise_bytes / max(peak, 1))
    if found.how != "steps" and severity == "high":
        severity = "medium"  # cycles nobody marked may all lie in one step
    room = None if _failed(session, found) else _room(session, found, peak)
    full = "" if room is None else _full(*room, slope.value, period)
    return Found(
        title=f"The floor rises by {figure} {seen}: {worst['label']} leaves "
        f"{units.size(worst['bytes_per_cycle'])} behind each {period}{full}",
        severity=severity,
        size_bytes=grown,
        evidence=[_row(found, row, room) for row in lines.head(5).to_dict("records")],
        advice=RULE.advice + caveat,
    )


def _failed(session: Session, found: MemoryCycles) -> bool:
    """A request failed in this log: the device is full already (see oom)."""
    events = session.recordings[found.log.device.recording].table("allocator_events")
    mine = events["device"].eq(found.log.device.device)
    return bool((mine & events["action"].eq("oom")).any())


def _room(session: Session, found: MemoryCycles, peak: int) -> tuple[int, int] | None:
    """Bytes of the device, and how many of them are free above the peak of what is allocated."""
    size = device_size(session, found.log.device)
    return None if size is None else (size.size_bytes, max(size.size_bytes - peak, 0))


def _full(size_bytes: int, room_bytes: int, slope: float, period: str) -> str:
    left = int(room_bytes // slope)
    return (
        f"; at that rate the device's {units.size(size_bytes)} are full after at most "
        f"{units.count(left)} more {period}{'' if left == 1 else 's'}"
    )


def _categories(found: MemoryCycles, lines: pd.DataFrame) -> pd.Series:
    kinds = categories_of(found.log).set_index("allocation")["category"].astype(object)
    return lines["allocation"].map(kinds).astype(object)


def _once(found: MemoryCycles, lines: pd.DataFrame) -> pd.Series:
    return _categories(found, lines).isin(FILLED_ONCE)


def _row(found: MemoryCycles, row: dict[str, Any], room: tuple[int, int] | None) -> dict[str, Any]:
    period_ns = found.period_ns
    left = None if room is None else int(room[1] // found.slope.value)
    return {
        "table": "allocations",
        "recording": found.log.device.recording,
        "device": found.log.device.device,
        "allocation": int(row["allocation"]),
        "line": str(row["label"]),
        "size_bytes": int(row["size_bytes"]),
        "blocks": int(row["blocks"]),
        "bytes_per_cycle": round(row["bytes_per_cycle"]),
        "cycles": int(row["cycles"]),
        "slope_bytes": round(found.slope.value),
        "slope_low_bytes": round(found.slope.low),
        "slope_high_bytes": round(found.slope.high),
        "how": found.how,
        "period_ns": None if math.isnan(period_ns) else round(period_ns),
        "cycles_until_full": left,
    }


RULE = Rule(
    id="memory-leak",
    question="Does memory stay behind after each step?",
    figures=("memory-curve",),
    view="memory",
    advice="Find what keeps the tensors made at the named line: a list or attribute they are "
    "appended to, or a loss summed up with its graph. Store loss.item() or tensor.detach() "
    "instead, or del the reference at the end of the step.",
    change="1 line",
    ask=ask,
)
