"""What the optimizer launches, a step of one rank."""

from __future__ import annotations

from maiprof_nb.analysis.steps import steps
from maiprof_nb.findings._wording import times
from maiprof_nb.session import Session


def optimizer_launches(session: Session, pieces: int) -> tuple[float, str]:
    """Device work an optimizer launches a step of each rank, and the same in words.

    Without marked steps it is all of it, and the words say so.
    """
    marks = len(steps(session)[["recording", "step"]].drop_duplicates())
    if not marks:
        return float(pieces), f"{times(pieces, 'piece')} of device work in all"
    ranks = " of each rank" if steps(session)["recording"].nunique() > 1 else ""
    each = pieces / marks
    if 0 < each < 1:
        return each, f"{times(pieces, 'piece')} of device work in {times(marks, 'step')}"
    return each, f"{times(round(each), 'piece')} of device work a step{ranks}"
