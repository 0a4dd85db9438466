"""The memory guide asks: is the curve healthy, does it rise, is it torn, does it fit."""

from __future__ import annotations

import pandas as pd

from maiprof_nb.analysis._device_logs import device_logs
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.findings.diagnosis import diagnose
from maiprof_nb.findings.finding import FAILED, FOUND, NOT_APPLICABLE, Finding
from maiprof_nb.findings.verdict import Verdict
from maiprof_nb.session import Session

_SAWTOOTH = (
    "What comes and goes with each step are activations, gradients and temporaries: the teeth. "
    "What stays between them are parameters, optimizer state and caches: the floor. Even teeth "
    "over a level floor are how a healthy job looks."
)
_LEAK = (
    "A floor that rises from step to step is memory that something still refers to. It ends out "
    "of memory, however large the device; a floor that rises only in the first steps does not."
)
_FRAGMENTATION = (
    "What is reserved but not allocated is either whole segments that the allocator keeps to use "
    "again (harmless, unless others need the device), or holes between live blocks, which no "
    "larger request fits into."
)
_FIT = (
    "A request fails when neither a free block of the allocator nor the device has enough in one "
    "piece. The lines that hold most at the peak are where memory is to be won."
)
_SHAPES = {  # in the order in which they matter; outcomes that have the shape
    "oom": ("Out of memory, or nearly", (FOUND,), _FIT),
    "memory-leak": ("Rising", (FOUND,), _LEAK),
    "fragmentation": ("Torn into holes", (FOUND,), _FRAGMENTATION),
    "memory-sawtooth": ("A sawtooth", (FOUND, "passed"), _SAWTOOTH),
}


def memory_shape_verdict(session: Session) -> Verdict:
    """Say which of the shapes the memory curve has: the first that matters.

    Raises
    ------
    NotAnswerableError
        If no memory of a device was recorded.
    """
    found = _asked(session, *_SHAPES)
    question = "What shape has the memory curve?"
    for rule, (shape, outcomes, meaning) in _SHAPES.items():
        if found[rule].outcome in outcomes:
            others = [one.title for one in found.values() if one.outcome == FOUND]
            also = [title for title in others if title != found[rule].title]
            told = " ".join([meaning, *(f"Also: {_sentence(title)}" for title in also)])
            return _verdict(question, found[rule], told, shape)
    told = "Neither out of memory, nor rising, nor torn into holes; and no cycles to be seen."
    return _verdict(question, found["memory-sawtooth"], told, "No shape of these")


def memory_sawtooth_verdict(session: Session) -> Verdict:
    """Say how high the teeth are, and over which floor.

    Raises
    ------
    NotAnswerableError
        If no memory of a device was recorded.
    """
    found = _asked(session, "memory-sawtooth")["memory-sawtooth"]
    return _verdict("Does memory come and go evenly?", found, _SAWTOOTH)


def memory_leak_verdict(session: Session) -> Verdict:
    """Say whether the floor rises, and which line leaves something behind.

    Raises
    ------
    NotAnswerableError
        If no memory of a device was recorded.
    """
    found = _asked(session, "memory-leak")["memory-leak"]
    return _verdict("Does memory stay behind after each step?", found, _LEAK)


def memory_fragmentation_verdict(session: Session) -> Verdict:
    """Say what is reserved and not used: in holes, or in whole segments.

    Raises
    ------
    NotAnswerableError
        If no memory of a device was recorded.
    """
    question = "Is what is reserved also used?"
    return _dearest(session, question, _FRAGMENTATION, "fragmentation", "over-reservation")


def memory_fit_verdict(session: Session) -> Verdict:
    """Say whether a request failed, or how much room there is for a larger batch.

    Raises
    ------
    NotAnswerableError
        If no memory of a device was recorded.
    """
    question = "Does the job fit, and would more?"
    return _dearest(session, question, _FIT, "oom", "memory-headroom")


def _asked(session: Session, *rules: str) -> dict[str, Finding]:
    if not device_logs(session):
        raise NotAnswerableError(
            "no memory of a device was recorded",
            remedy="Call torch.cuda.memory._record_memory_history() at the start and "
            "torch.cuda.memory._dump_snapshot() at the end",
        )
    return {one.rule: one for one in diagnose(session, rules=rules)}


def _dearest(session: Session, question: str, meaning: str, *rules: str) -> Verdict:
    """The first rule that found something decides; the others are said beside it."""
    found = _asked(session, *rules)
    order = sorted(rules, key=lambda rule: (found[rule].outcome != FOUND, rules.index(rule)))
    answers = [found[rule] for rule in order if found[rule].outcome not in (NOT_APPLICABLE, FAILED)]
    if not answers:
        return _verdict(question, found[rules[0]], meaning)
    beside = [_sentence(one.title) for one in answers[1:]]
    return _verdict(question, answers[0], " ".join([*beside, meaning]))


def _verdict(question: str, found: Finding, meaning: str, shape: str = "") -> Verdict:
    unknown = found.outcome in (NOT_APPLICABLE, FAILED)
    title = f"It cannot be told: {found.reason}" if unknown else found.title
    change = f" ({found.change})" if found.change and found.advice else ""
    return Verdict(
        question=question,
        figure=_sentence(f"{shape}. {title}" if shape else title),
        meaning=meaning,
        attempt=f"{found.advice}{change}" if found.outcome == FOUND else "",
        evidence=pd.DataFrame(found.evidence),
        reservations=found.reasons,
    )


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."
