"""How much a change would save: bounds from replaying the schedule without the cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from maiprof_nb.analysis._changes import CEILING, CHANGES, EXPECTED, FLOOR, assumptions, case_of
from maiprof_nb.analysis.schedule import replay, require_faithful, schedule
from maiprof_nb.errors import UsageError
from maiprof_nb.session import Session

CHANGE_OF_RULE = {
    "input-bound": "input",
    "few-data-workers": "input",
    "memory-headroom": "batch",
    "no-tensor-cores": "amp",
    "fp32-matmul": "amp",
    "single-tensor-optimizer": "multi-tensor",
    "hidden-sync": "no-sync",
    "exposed-communication": "overlap-communication",
    "launch-bound": "graphs",
    "small-kernels": "graphs",
}


@dataclass(frozen=True)
class Projection:
    """Bounds of what changes would save over the window, for the same work.

    Parameters
    ----------
    changes : tuple of str
        Replayed together.
    floor_ns, expected_ns, ceiling_ns : int
        Time saved at least, expected and at most; a floor below zero means that the change may
        cost time.
    baseline_ns : int
        The window as the unchanged replay has it.
    steps : int
        Recorded steps in the window; 0 if none were recorded.
    method : str
        What was done, for people.
    reasons : tuple of str
        What is taken for granted.
    replay_error : float
        How far the unchanged replay is from the recording, as a share.

    Notes
    -----
    Bounds, not a promise. Shares are of the time the same rows take now: a change that doubles
    the batch is compared by rows, not by steps.
    """

    changes: tuple[str, ...]
    floor_ns: int
    expected_ns: int
    ceiling_ns: int
    baseline_ns: int
    steps: int
    method: str
    reasons: tuple[str, ...]
    replay_error: float

    @property
    def shares(self) -> tuple[float, float, float]:
        """Floor, expected and ceiling as shares of the window."""
        saved = (self.floor_ns, self.expected_ns, self.ceiling_ns)
        low, middle, high = (one / max(self.baseline_ns, 1) for one in saved)
        return low, middle, high

    @property
    def speedups(self) -> tuple[float, float, float]:
        """By what factor rows a second would grow."""
        low, middle, high = (1 / max(1 - share, 1e-9) for share in self.shares)
        return low, middle, high

    def as_dict(self) -> dict[str, Any]:
        """Plain data: ns a (recorded) step, or of the window where there are no steps."""
        count = max(self.steps, 1)
        low, middle, high = self.shares
        return {
            "floor_ns": self.floor_ns // count,
            "expected_ns": self.expected_ns // count,
            "ceiling_ns": self.ceiling_ns // count,
            "per": "step" if self.steps else "window",
            "floor_share": low,
            "expected_share": middle,
            "ceiling_share": high,
            "changes": list(self.changes),
            "method": self.method,
            "reasons": list(self.reasons),
            "replay_error": self.replay_error,
        }


def project(
    session: Session, change: str | Sequence[str], *, cores: int | None = None
) -> Projection:
    """Bounds of what one change, or several together, would save.

    Parameters
    ----------
    session : Session
        Its window of figures is replayed, for the first rank with device work.
    change : str or sequence of str
        ``input``, ``batch``, ``amp``, ``multi-tensor``, ``no-sync``, ``overlap-communication``,
        ``graphs``, or the id of a rule that names one. Several are replayed together, so that
        what they save twice counts once.
    cores : int, optional
        Cores of the host, which bound the workers of ``input``.

    Raises
    ------
    NotAnswerableError
        If the unchanged replay does not reproduce the recorded step ends, or the recording
        holds nothing the change would act on.
    UsageError
        If a change is not known.

    Examples
    --------
    >>> project(session, "input", cores=16).shares  # doctest: +SKIP
    (0.41, 0.54, 0.65)
    """
    names = tuple(
        dict.fromkeys(_known(one) for one in ([change] if isinstance(change, str) else change))
    )
    found = schedule(session)
    error = require_faithful(found)
    case = case_of(session, found, cores)
    baseline = found.unchanged.window_ns
    saved = []
    for bound in (FLOOR, EXPECTED, CEILING):
        durations = found.durations.copy()
        for name in names:
            durations = CHANGES[name](case, durations, bound)
        saved.append(round(baseline - replay(found, durations).window_ns / durations.rows))
    reasons = [said for name in names for said in assumptions(case, name)]
    traced = session.table("kernels")["recording"].nunique()
    if traced > 1:
        reasons.append(f"One of {traced} ranks was replayed; the others stay as recorded.")
    return Projection(
        changes=names,
        floor_ns=saved[FLOOR],
        expected_ns=saved[EXPECTED],
        ceiling_ns=saved[CEILING],
        baseline_ns=round(baseline),
        steps=len(found.steps),
        method=f"replayed {len(found.points.kind)} host moments and {len(found.work.row)} pieces "
        "of device work without the cost",
        reasons=tuple(reasons),
        replay_error=error,
    )


def _known(change: str) -> str:
    name = CHANGE_OF_RULE.get(change, change)
    if name not in CHANGES:
        raise UsageError(f"there is no change {change}", remedy=f"Changes: {', '.join(CHANGES)}")
    return name
