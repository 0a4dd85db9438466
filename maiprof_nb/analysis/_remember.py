"""Remembers an analysis of a session for as long as the session lives."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from maiprof_nb.session import Session

T = TypeVar("T")


def remembered(analysis: Callable[[Session], T]) -> Callable[[Session], T]:
    """Compute once a session: sessions never change, and views ask again at every zoom."""
    key = f"_remembered_{analysis.__module__}.{analysis.__qualname__}"

    @wraps(analysis)
    def ask(session: Session) -> T:
        if key not in session.__dict__:
            session.__dict__[key] = analysis(session)
        found: T = session.__dict__[key]
        return found

    return ask
