"""What a check is: a small rule with an outcome, a count and the figures it speaks about."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from maiprof_nb.trust.figures import FIGURES

PASSED, FAILED, NOT_APPLICABLE = "passed", "failed", "not-applicable"
SUBJECTS = ("trace", "snapshot", "metrics", "recording", "session")


@dataclass(frozen=True, slots=True)
class Result:
    """How one check of one recording, or of the session, ended.

    Parameters
    ----------
    outcome : str
        ``passed``, ``failed`` or ``not-applicable``.
    reason : str
        One sentence with the numbers, or why the check does not apply; empty if passed.
    count : int
        How many rows are concerned.
    share : float
        Their share, 0 to 1, of what the check looked at; NaN where none can be stated.
    """

    outcome: str
    reason: str = ""
    count: int = 0
    share: float = float("nan")


def passed(count: int = 0, share: float = 0.0) -> Result:
    """Nothing found, or too little to matter."""
    return Result(PASSED, count=count, share=share)


def failed(reason: str, count: int = 1, share: float = float("nan")) -> Result:
    """The fault is there."""
    return Result(FAILED, reason, count, share)


def not_applicable(reason: str) -> Result:
    """The recording holds nothing this check could look at."""
    return Result(NOT_APPLICABLE, reason)


def judged(count: int, share: float, limit: float, reason: Callable[[], str]) -> Result:
    """Failed if the share is above the limit, else passed with the same numbers."""
    return failed(reason(), count, share) if share > limit else passed(count, share)


@dataclass(frozen=True)
class Rule:
    """One fault a recording can have, and how to find it.

    Parameters
    ----------
    id : str
        Stable name.
    title : str
        The fault, as a phrase.
    of : str
        What ``check`` is given: one ``trace``, ``snapshot``, ``metrics`` or any
        ``recording``, or the whole ``session``.
    remedy : str
        What to do about it.
    prevents, reduces : tuple of str
        Figures that cannot be answered, or only with the reservation.
    says : tuple of str
        Figures beside which it is said although it takes nothing from them.
    check : callable
        Finds it. Its docstring says what the rule means.
    """

    id: str
    title: str
    of: str
    remedy: str
    check: Callable[[Any], Result]
    prevents: tuple[str, ...] = ()
    reduces: tuple[str, ...] = ()
    says: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        unknown = set(self.affects) - set(FIGURES)
        if unknown or self.of not in SUBJECTS:
            raise ValueError(f"rule {self.id}: unknown {sorted(unknown) or self.of}")

    @property
    def affects(self) -> tuple[str, ...]:
        """Every figure it speaks about, in the order of `FIGURES`."""
        concerned = {*self.prevents, *self.reduces, *self.says}
        return tuple(name for name in FIGURES if name in concerned) + tuple(
            sorted(concerned - set(FIGURES))
        )

    @property
    def meaning(self) -> str:
        """What the rule looks for and why it matters."""
        return inspect.getdoc(self.check) or ""


def rule(
    name: str,
    *,
    of: str,
    title: str,
    remedy: str,
    prevents: tuple[str, ...] = (),
    reduces: tuple[str, ...] = (),
    says: tuple[str, ...] = (),
) -> Callable[[Callable[[Any], Result]], Rule]:
    """Make a `Rule` of a function that checks one recording or the session."""

    def make(check: Callable[[Any], Result]) -> Rule:
        return Rule(name, title, of, remedy, check, prevents, reduces, says)

    return make
