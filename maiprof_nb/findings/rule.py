"""What a rule is, and the outcomes it may answer with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from maiprof_nb.session import Session


@dataclass(frozen=True)
class Found:
    """Something was found.

    Parameters
    ----------
    title : str
        One sentence with the number in it.
    severity : str
        ``high``, ``medium`` or ``low``; `severity_of` gives the usual one of a share.
    cost_ns : int, optional
        Time it costs over the window of the figures.
    size_bytes : int, optional
        Bytes, for findings on memory.
    evidence : sequence of dict
        Rows behind the number, most telling first.
    advice, change : str, optional
        Instead of those of the rule, where they depend on what was found.
    """

    title: str
    severity: str
    cost_ns: int | None = None
    size_bytes: int | None = None
    evidence: Sequence[dict[str, Any]] = field(default_factory=tuple)
    advice: str | None = None
    change: str | None = None


@dataclass(frozen=True)
class Passed:
    """The fault is not there; the title says so, with the number."""

    title: str


@dataclass(frozen=True)
class NotApplicable:
    """The recording cannot say; the reason tells what would."""

    reason: str


Answer = Found | Passed | NotApplicable


@dataclass(frozen=True)
class Rule:
    """One fault to look for.

    Parameters
    ----------
    id : str
        Stable id.
    question : str
        What is asked, for lists of rules.
    figures : tuple of str
        Figures of `maiprof_nb.trust` the answer rests on.
    view : str
        The view that shows it.
    advice : str
        The edit to try.
    change : str
        Size of the edit.
    ask : callable
        Session -> Found, Passed or NotApplicable. A NotAnswerableError it lets through
        counts as not applicable.
    change_id : str, optional
        The change of `maiprof_nb.analysis.projection` whose gain is projected, where it is not
        the one named there for the rule's id.
    """

    id: str
    question: str
    figures: tuple[str, ...]
    view: str
    advice: str
    change: str
    ask: Callable[[Session], Answer]
    change_id: str | None = None


def severity_of(share: float, *, high: float = 0.2, medium: float = 0.05) -> str:
    """The usual severity of a cost that is this share of the window."""
    return "high" if share >= high else "medium" if share >= medium else "low"
