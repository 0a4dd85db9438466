"""How far a figure can be trusted, in a line beneath it; and every check, as a table."""

from __future__ import annotations

import ipywidgets
import pandas as pd

from maiprof_nb import units
from maiprof_nb.errors import MaiprofError
from maiprof_nb.session import Session
from maiprof_nb.trust import RULES, Trust, checks, trust
from maiprof_widgets import escaping

_STATES = ("ok", "reduced", "not answerable")
_TITLES = {rule.id: rule.title for rule in RULES}


class TrustLine(ipywidgets.HTML):
    """One line: ok, reduced, or not answerable, with the reasons folded.

    Parameters
    ----------
    session : Session
        What was recorded.
    *figures : str
        Names of `maiprof_nb.trust.FIGURES` that the view above shows. Those that cannot be
        answered count only if none can: the view shows the others.
    """

    def __init__(self, session: Session, *figures: str) -> None:
        self.trust = _together([_asked(session, figure) for figure in figures])
        super().__init__(_line(self.trust))
        self.layout.width = "100%"


def _asked(session: Session, figure: str) -> Trust:
    try:
        return trust(session, figure)
    except MaiprofError as problem:
        return Trust("reduced", (f"It could not be checked: {problem.sentence}",))


def _together(found: list[Trust]) -> Trust:
    """The worst of those that can be answered."""
    answered = [one for one in found if one.state != _STATES[-1]] or found
    worst = max((one.state for one in answered), key=_STATES.index)
    reasons = dict.fromkeys(
        reason for one in answered if one.state == worst for reason in one.reasons
    )
    return Trust(worst, tuple(reasons))


def _line(found: Trust) -> str:
    kind = found.state.replace(" ", "-")
    if not found.reasons:
        return f'<div class="maiprof-trust maiprof-trust-{kind}">Trust: {found.state}</div>'
    count = len(found.reasons)
    what = {"ok": "remark", "reduced": "reason"}.get(found.state, "remedy")
    several = what if count == 1 else {"remedy": "remedies"}.get(what, f"{what}s")
    items = "".join(f"<li>{escaping.text(reason)}</li>" for reason in found.reasons)
    return (
        f'<details class="maiprof-trust maiprof-trust-{kind}"><summary>Trust: '
        f"<b>{found.state}</b> ({count} {several})</summary><ul>{items}</ul></details>"
    )


def checks_table(session: Session) -> str:
    """All checks of the recordings as HTML: what failed first, then the rest, folded."""
    try:
        found = checks(session)
    except MaiprofError as problem:
        return f"<div>The checks failed: {escaping.text(problem.sentence)}</div>"
    failed = found[found["outcome"] == "failed"]
    rest = found[found["outcome"] != "failed"]
    passed = int((rest["outcome"] == "passed").sum())
    head = (
        f"Checks: {units.count(len(failed))} failed, {units.count(passed)} passed, "
        f"{units.count(len(rest) - passed)} do not apply"
    )
    return (
        f"<details><summary>{head}</summary>{_table(failed, session)}"
        f"<details><summary>Passed, or not for these files</summary>"
        f"{_table(rest.sort_values('outcome', ascending=False), session)}</details></details>"
    )


def _table(rows: pd.DataFrame, session: Session) -> str:
    if rows.empty:
        return "<div>None.</div>"
    body = "".join(_row(row, session) for row in rows.itertuples())
    return (
        "<table><thead><tr><th>check</th><th>outcome</th><th>of</th><th>found</th>"
        f"<th>speaks about</th></tr></thead><tbody>{body}</tbody></table>"
    )


def _row(row: object, session: Session) -> str:
    number = row.recording  # type: ignore[attr-defined]
    source = "the session" if pd.isna(number) else session.recordings[int(number)].source
    failed = row.outcome == "failed"  # type: ignore[attr-defined]
    said = f"{row.reason} {row.remedy}." if failed else row.reason  # type: ignore[attr-defined]
    name = row.id  # type: ignore[attr-defined]
    cells = (
        f"{_TITLES.get(name, name)} ({name})",
        row.outcome,  # type: ignore[attr-defined]
        source.replace("\\", "/").rsplit("/", 1)[-1],
        said,
        ", ".join(row.affects),  # type: ignore[attr-defined]
    )
    return "<tr>" + "".join(f"<td>{escaping.text(cell)}</td>" for cell in cells) + "</tr>"
