"""Remembers an analysis for as long as what it was asked of lives."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

S = TypeVar("S")
T = TypeVar("T")


def remembered(analysis: Callable[[S], T]) -> Callable[[S], T]:
    """Compute once a session (or a log): they never change, and views ask again at every zoom."""
    key = f"_remembered_{analysis.__module__}.{analysis.__qualname__}"

    @wraps(analysis)
    def ask(of: S) -> T:
        if key not in of.__dict__:
            of.__dict__[key] = analysis(of)
        found: T = of.__dict__[key]
        return found

    return ask
