"""A load that leaves the kernel free to answer: to show how far it is, and to stop it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from maiprof_nb.errors import MaiprofError
from maiprof_nb.loading.progress import Report
from maiprof_nb.session import Session


class CancelledError(MaiprofError):
    """Raised inside a load to stop it."""

    def __init__(self) -> None:
        super().__init__("the load was stopped")


class BackgroundLoad:
    """One load in a thread of its own. It touches no widget: whoever shows it asks how far it is.

    Parameters
    ----------
    path : str
        What is loaded.
    work : callable
        ``work(report)`` gives the session, and calls ``report`` with the share done.

    Attributes
    ----------
    share : float
        How much is done, 0 to 1.
    """

    def __init__(self, path: str, work: Callable[[Report], Session]) -> None:
        self.path = path
        self.share = 0.0
        self._work = work
        self._begun_s = time.monotonic()
        self._session: Session | None = None
        self._problem: Exception | None = None
        self._cancelled = threading.Event()
        self._finished = threading.Event()
        threading.Thread(target=self._run, name=f"loading {path}", daemon=True).start()

    @property
    def elapsed_s(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self._begun_s

    @property
    def remaining_s(self) -> float | None:
        """Estimate of the seconds left; None where too little is done to tell."""
        if self.share <= 0:
            return None
        return self.elapsed_s * (1 - self.share) / self.share

    @property
    def finished(self) -> bool:
        """Whether it ended, in whichever way."""
        return self._finished.is_set()

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked it to stop."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Ask it to stop, at its next report."""
        self._cancelled.set()

    def wait(self, timeout_s: float) -> bool:
        """Whether it has finished after at most so many seconds."""
        return self._finished.wait(timeout_s)

    def result(self) -> Session:
        """What was loaded, once it has finished.

        Raises
        ------
        CancelledError
            If it was stopped.
        MaiprofError
            If it could not be read.
        """
        if self.cancelled or self._session is None:
            raise self._problem or CancelledError()
        return self._session

    def _run(self) -> None:
        try:
            self._session = self._work(self._report)
        except Exception as problem:  # noqa: BLE001 - raised again by who asks for the result
            self._problem = problem
        finally:
            self._finished.set()

    def _report(self, share: float) -> None:
        if self.cancelled:
            raise CancelledError
        self.share = share
