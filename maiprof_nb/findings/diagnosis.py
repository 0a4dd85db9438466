"""Asks every rule about a session."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from maiprof_nb.analysis.projection import CHANGE_OF_RULE, project
from maiprof_nb.analysis.steps import figure_window, steps
from maiprof_nb.errors import MaiprofError, UsageError
from maiprof_nb.findings.finding import FAILED, FOUND, NOT_APPLICABLE, PASSED, SEVERITIES, Finding
from maiprof_nb.findings.rule import Found, NotApplicable, Passed, Rule
from maiprof_nb.findings.rules import RULES
from maiprof_nb.session import Session
from maiprof_nb.trust import trust

_LOG = logging.getLogger(__name__)
_ORDER = {FOUND: 0, FAILED: 1, PASSED: 2, NOT_APPLICABLE: 3}
_END_THE_JOB = ("oom", "memory-leak")  # read before what as severe only makes it dear
_STATES = ("ok", "reduced", "not answerable")


def diagnose(session: Session, *, rules: Sequence[str] | None = None) -> list[Finding]:
    """Ask the rules, and list every outcome.

    Parameters
    ----------
    session : Session
        Ranks and window that are selected count.
    rules : sequence of str, optional
        Ids to ask; all by default.

    Returns
    -------
    list of Finding
        What was found first, dearest first; then rules that failed, passed, and do not apply.
        Costs of different findings may be the same time seen twice: they do not add up.

    Raises
    ------
    UsageError
        If a rule is not known.
    """
    known = {rule.id: rule for rule in RULES}
    chosen = list(known) if rules is None else list(rules)
    unknown = [rule for rule in chosen if rule not in known]
    if unknown:
        raise UsageError(f"there is no rule {unknown[0]}", remedy=f"Rules: {', '.join(known)}")
    found = [_asked(known[rule], session) for rule in chosen]
    return sorted(found, key=importance)


def as_json(finding: Finding) -> dict[str, Any]:
    """A finding as the command line prints it."""
    said = asdict(finding)
    said["trust"] = {"state": said.pop("trust"), "reasons": list(said.pop("reasons"))}
    said["evidence"] = list(said["evidence"])
    return said


def importance(finding: Finding) -> tuple[int, int, bool, float, int, str]:
    """Sorts outcomes: what was found first, what ended the job before what made it dear."""
    severity = SEVERITIES.index(finding.severity) if finding.severity else len(SEVERITIES)
    goes_on = finding.rule not in _END_THE_JOB
    dear = -(finding.share or 0), -(finding.size_bytes or 0)
    return _ORDER[finding.outcome], severity, goes_on, *dear, finding.rule


def _asked(rule: Rule, session: Session) -> Finding:
    try:
        answer = rule.ask(session)
    except MaiprofError as problem:
        reason = _explained(problem)
        return Finding(rule.id, NOT_APPLICABLE, rule.question, view=rule.view, reason=reason)
    except Exception as problem:  # noqa: BLE001 - one broken rule must not hide the others
        _LOG.warning("rule %s failed", rule.id, exc_info=True)
        reason = f"The rule failed ({type(problem).__name__}: {problem})."
        return Finding(rule.id, FAILED, rule.question, view=rule.view, reason=reason)
    if isinstance(answer, NotApplicable):
        reason = _as_sentence(answer.reason)
        return Finding(rule.id, NOT_APPLICABLE, rule.question, view=rule.view, reason=reason)
    state, reasons = _trust(rule, session)
    if isinstance(answer, Passed):
        return Finding(
            rule.id, PASSED, answer.title, view=rule.view, scope=_scope(session), trust=state,
            reasons=reasons,
        )  # fmt: skip
    return _finding(rule, answer, session, state, reasons)


def _explained(problem: MaiprofError) -> str:
    """An error as a sentence; a file at its beginning keeps its name."""
    return problem.sentence if problem.where else _as_sentence(problem.sentence)


def _as_sentence(said: str) -> str:
    said = said[:1].upper() + said[1:]
    return said if said.endswith((".", "?", "!")) else f"{said}."


def _finding(
    rule: Rule, answer: Found, session: Session, state: str, reasons: tuple[str, ...]
) -> Finding:
    scope = _scope(session)
    window_ns = scope["window_ns"][1] - scope["window_ns"][0]
    cost = None if answer.cost_ns is None else int(answer.cost_ns)
    count = scope["steps"]
    return Finding(
        rule=rule.id,
        outcome=FOUND,
        title=answer.title,
        severity=answer.severity,
        cost_ns=cost,
        cost_ns_per_step=None if cost is None or not count else cost // count,
        share=None if cost is None or not window_ns else cost / window_ns,
        size_bytes=None if answer.size_bytes is None else int(answer.size_bytes),
        scope=scope,
        evidence=tuple(answer.evidence),
        advice=rule.advice if answer.advice is None else answer.advice,
        change=rule.change if answer.change is None else answer.change,
        view=rule.view,
        trust=state,
        reasons=reasons,
        gain=_gain(rule, session),
    )


def _gain(rule: Rule, session: Session) -> dict[str, Any] | None:
    """What the rule's change would save, or why that cannot be said."""
    change = rule.change_id or CHANGE_OF_RULE.get(rule.id)
    if change is None:
        return None
    try:
        return project(session, change).as_dict()
    except MaiprofError as problem:
        return {"reason": _explained(problem)}
    except Exception as problem:  # noqa: BLE001 - a finding stands without its projection
        _LOG.warning("projection for rule %s failed", rule.id, exc_info=True)
        return {"reason": f"The projection failed ({type(problem).__name__}: {problem})."}


def _trust(rule: Rule, session: Session) -> tuple[str, tuple[str, ...]]:
    """The worst state of the figures a rule rests on, with every reason once."""
    found = [trust(session, figure) for figure in rule.figures]
    state = max((one.state for one in found), key=_STATES.index, default="ok")
    return state, tuple(dict.fromkeys(reason for one in found for reason in one.reasons))


def _scope(session: Session) -> dict[str, Any]:
    window = figure_window(session).window
    marks = steps(session)
    inside = (marks["ts_ns"] < window.end_ns) & (marks["end_ns"] > window.start_ns)
    return {
        "ranks": list(session.selected_ranks or session.ranks),
        "steps": int(marks[inside]["step"].nunique()),
        "window_ns": [window.start_ns, window.end_ns],
    }
