"""Asks one rule, as the diagnosis does."""

from __future__ import annotations

from maiprof_nb import Session
from maiprof_nb.findings.diagnosis import diagnose
from maiprof_nb.findings.finding import Finding

US = 1_000  # ns


def finding(session: Session, rule: str) -> Finding:
    """The only finding of one rule; a rule that failed shows its reason."""
    (found,) = diagnose(session, rules=[rule])
    assert found.rule == rule
    assert found.outcome != "failed", found.reason
    return found
