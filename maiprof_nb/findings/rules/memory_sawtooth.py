"""Teeth of the memory curve over a floor: how high, how often, and how much of the peak."""

from __future__ import annotations

import math

from maiprof_nb import units
from maiprof_nb.analysis._device_logs import device_logs
from maiprof_nb.analysis._device_peaks import device_peak
from maiprof_nb.analysis.kv_cache import cache_growth
from maiprof_nb.analysis.memory_cycles import MemoryCycles, cycles_of
from maiprof_nb.analysis.memory_peak import OPTIMIZER, MemoryPeak
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.findings.rule import Answer, Found, NotApplicable, Passed, Rule
from maiprof_nb.findings.rules._memory import live_rows, no_snapshot, on
from maiprof_nb.session import Session

DOMINATES = 0.5  # of the peak: then what comes and goes decides what fits, not what stays


def ask(session: Session) -> Answer:
    """At least 5 even teeth after the warm-up, over a floor that does not rise.

    That is how healthy memory looks, so it passes, with period, floor and height of a tooth
    (for a key-value cache as bytes a token times tokens). Found, as a statement of low severity,
    where a tooth is at least half of the peak: then lines that make it are where memory is to be
    won. The title says so where the peak lies in the optimizer's step.
    """
    try:
        logs = device_logs(session)
    except NotAnswerableError:
        return NotApplicable(no_snapshot(session))
    reasons, answers = [], []
    for log in logs:
        try:
            cycles = cycles_of(session, log)
        except NotAnswerableError as problem:
            reasons.append(problem.sentence)
            continue
        if not cycles.even and cycles.how != "steps":
            reasons.append("The cycles of the memory curve are too uneven to be a sawtooth.")
            continue
        answers.append(_of_device(session, cycles))
    found = [one for one in answers if isinstance(one, Found)]
    if found:
        return max(found, key=lambda one: one.size_bytes or 0)
    if answers:
        return answers[0]
    return NotApplicable(reasons[0] if reasons else no_snapshot(session))


def _of_device(session: Session, cycles: MemoryCycles) -> Answer:
    peak = device_peak(session, cycles.log)
    tooth, share = cycles.tooth_bytes, cycles.tooth_bytes / max(peak.peak_bytes, 1)
    said = (
        f"{len(cycles.cycles)} teeth{on(session, cycles.log)}{_every(cycles)}, "
        f"{units.size(tooth)} high over a floor of {units.size(cycles.floor_bytes)}"
        f"{_cache(cycles)}{_at(peak)}"
    )
    if cycles.rising:
        return Passed(f"{said}; the floor rises (see memory-leak).")
    if share < DOMINATES:
        return Passed(f"{said}: a healthy sawtooth, {units.percent(share)} of the peak.")
    return Found(
        title=f"{said}: {units.percent(share)} of the peak comes and goes",
        severity="low",
        size_bytes=tooth,
        evidence=live_rows(cycles.log, peak.state),
    )


def _every(cycles: MemoryCycles) -> str:
    period_ns = cycles.period_ns
    return "" if math.isnan(period_ns) else f", one every {units.duration(period_ns)}"


def _cache(cycles: MemoryCycles) -> str:
    growth = cache_growth(cycles.log)
    if growth is None:
        return ""
    return (
        f"; the key-value cache holds {units.size(growth.bytes_per_token)} a token x "
        f"{units.count(growth.tokens)} tokens = {units.size(growth.size_bytes)}"
    )


def _at(peak: MemoryPeak) -> str:
    if peak.phase is None:
        return ""
    where = "the optimizer's step" if peak.phase == OPTIMIZER else f"phase {peak.phase}"
    return f"; the peak of {units.size(peak.peak_bytes)} lies in {where}"


RULE = Rule(
    id="memory-sawtooth",
    question="Does memory come and go evenly, and how much of the peak is that?",
    figures=("memory-curve", "memory-peak"),
    view="memory",
    advice="Lower the teeth rather than the floor: activation checkpointing, a smaller micro-batch "
    "with gradient accumulation, or fused kernels (such as scaled_dot_product_attention) in place "
    "of the lines that hold most at the peak.",
    change="1 to 3 lines",
    ask=ask,
)
