"""What speaks against believing a verdict."""

from __future__ import annotations

from maiprof_nb.session import Session
from maiprof_nb.trust import trust


def reservations(session: Session, *figures: str) -> tuple[str, ...]:
    """Reasons why any of these figures may be off, each once, as sentences."""
    found = [reason for figure in figures for reason in trust(session, figure).reasons]
    return tuple(dict.fromkeys(found))
