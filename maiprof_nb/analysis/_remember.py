"""Remembers an analysis for as long as what it was asked of lives."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

S = TypeVar("S")
P = ParamSpec("P")
T = TypeVar("T")


def remembered(analysis: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Compute once a session (or a log), and once for each set of further arguments.

    Sessions never change, and views ask again at every zoom.
    """
    key = f"_remembered_{analysis.__module__}.{analysis.__qualname__}"

    @wraps(analysis)
    def ask(of: S, /, *args: P.args, **named: P.kwargs) -> T:
        known: dict[Hashable, T] = of.__dict__.setdefault(key, {})
        asked = (args, *sorted(named.items()))
        if asked not in known:
            known[asked] = analysis(of, *args, **named)
        return known[asked]

    return ask
