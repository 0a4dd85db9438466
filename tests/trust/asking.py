"""How a test asks for one check."""

from __future__ import annotations

import pandas as pd

from maiprof_nb import Session
from maiprof_nb.trust import checks


def outcome(session: Session, name: str) -> pd.Series:
    """The row of one rule, of a session with one recording it applies to."""
    table = checks(session)
    (at,) = table.index[table["id"] == name]
    return table.loc[at]


def failing(session: Session) -> set[str]:
    table = checks(session)
    return set(table.loc[table["outcome"] == "failed", "id"])
