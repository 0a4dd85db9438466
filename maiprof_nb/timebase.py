"""Windows of time, and how each source's own clock maps to wall-clock time."""

from __future__ import annotations

from dataclasses import dataclass

from maiprof_nb.errors import UsageError

NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A half-open interval ``[start_ns, end_ns)`` in nanoseconds of one axis.

    Raises
    ------
    UsageError
        If the end lies before the start.
    """

    start_ns: int
    end_ns: int

    def __post_init__(self) -> None:
        if self.end_ns < self.start_ns:
            raise UsageError(
                f"a window cannot end ({self.end_ns} ns) before it starts ({self.start_ns} ns)"
            )

    @property
    def dur_ns(self) -> int:
        """Length in nanoseconds."""
        return self.end_ns - self.start_ns

    def intersect(self, other: TimeWindow) -> TimeWindow:
        """The part both windows share; empty (at the nearer edge) where they share none."""
        start = min(max(self.start_ns, other.start_ns), other.end_ns)
        return TimeWindow(start, max(start, min(self.end_ns, other.end_ns)))


@dataclass(frozen=True, slots=True)
class Clock:
    """How one source's ``ts_ns`` maps to wall-clock time.

    Parameters
    ----------
    epoch_ns : int or None
        Wall clock (ns since 1970-01-01 UTC) at the source's ``ts_ns == 0``;
        None when the source does not say.
    origin : str
        Where that knowledge comes from, as a short phrase for people.
    uncertainty_ns : int or None
        How far off the wall clock may be; None when it cannot be stated.
    ordered_only : bool
        True when ``ts_ns`` is an order (event or row number) and not a time.
    """

    epoch_ns: int | None
    origin: str
    uncertainty_ns: int | None = None
    ordered_only: bool = False
