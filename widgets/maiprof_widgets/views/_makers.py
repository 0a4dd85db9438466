"""A selected allocation, for views of operators: as the operator that made it."""

from __future__ import annotations

from maiprof_nb.analysis.allocation_makers import maker
from maiprof_nb.session import Session
from maiprof_widgets.link import Selection


def as_call(session: Session, chosen: Selection | None) -> Selection | None:
    """The call a selection means: of an allocation, the operator running when it was made.

    Any other selection is itself. None where nothing is selected, or no operator is known.
    """
    if chosen is None or chosen.table != "allocations" or chosen.row is None:
        return chosen
    made = maker(session, chosen.recording, chosen.row)
    if made is None:
        return None
    return Selection(
        "operators",
        name=str(made["operator"]),
        row=int(made["event"]),
        recording=int(made["recording"]),
    )
