"""Puts work off until the input has been quiet for a moment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Delayed:
    """Calls a function once, some time after the last request.

    Without a running event loop (a script, a test) it calls at once.
    """

    def __init__(self, work: Callable[[], None], seconds: float) -> None:
        self._work = work
        self._seconds = seconds
        self._waiting: asyncio.TimerHandle | None = None

    def request(self) -> None:
        """Ask for the work; an earlier request that still waits is replaced."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._work()
            return
        if self._waiting is not None:
            self._waiting.cancel()
        self._waiting = loop.call_later(self._seconds, self._work)
