"""How far a load is, for whoever wants to show it, and the way to stop it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Report = Callable[[float], None]
_listening: ContextVar[Report | None] = ContextVar("maiprof_progress", default=None)

_wish: ContextVar[BaseException | None] = ContextVar("maiprof_wish_to_stop", default=None)


@contextmanager
def reported_to(report: Report | None) -> Iterator[None]:
    """Send progress of what is loaded inside to `report`.

    Parameters
    ----------
    report : callable or None
        Called with the share done (0 to 1), some times a second at most for large files. It
        stops the load by raising an exception, which comes out of ``load``.
    """
    token = _listening.set(report)
    try:
        yield
    finally:
        _listening.reset(token)


def report(done: float, total: float) -> None:
    """Say that `done` of `total` is behind us."""
    listener = _listening.get()
    if listener is not None and total > 0:
        try:
            listener(min(done / total, 1.0))
        except BaseException as wish:
            _wish.set(wish)
            raise


def wanted(problem: BaseException) -> bool:
    """Whether an exception is a listener's wish to stop, and no fault of a reader."""
    return problem is _wish.get()


@contextmanager
def part(number: int, count: int) -> Iterator[None]:
    """What is reported inside is the progress of one of `count` equal parts."""
    listener = _listening.get()
    if listener is None:
        yield
        return
    with reported_to(lambda share: listener((number + share) / count)):
        yield
