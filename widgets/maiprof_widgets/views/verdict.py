"""A verdict in words, above its evidence."""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets

from maiprof_nb.errors import MaiprofError
from maiprof_nb.findings.verdict import Verdict
from maiprof_nb.session import Session
from maiprof_widgets import escaping


class VerdictView(ipywidgets.HTML):
    """Computed from the session by one of the steps' functions; never typed text.

    Parameters
    ----------
    session : Session
        What to judge.
    ask : callable
        Session -> Verdict. If it cannot be answered, the reason and the remedy show instead.
    """

    def __init__(self, session: Session, ask: Callable[[Session], Verdict]) -> None:
        try:
            self.verdict: Verdict | None = ask(session)
            shown = _shown(self.verdict)
        except MaiprofError as problem:
            self.verdict = None
            remedy = f"<br>{escaping.text(problem.remedy)}." if problem.remedy else ""
            why = f"<b>Not answerable:</b> {escaping.text(problem.problem)}.{remedy}"
            shown = f'<div class="maiprof-verdict">{why}</div>'
        super().__init__(shown)
        self.layout.width = "100%"


def _shown(verdict: Verdict) -> str:
    attempt = (
        f"<div><b>To try:</b> {escaping.text(verdict.attempt)}</div>" if verdict.attempt else ""
    )
    reserved = "".join(f"<li>{escaping.text(reason)}</li>" for reason in verdict.reservations)
    trust = (
        f'<div class="maiprof-sub">How far to trust this:<ul>{reserved}</ul></div>'
        if reserved
        else ""
    )
    question = f'<div class="maiprof-sub">{escaping.text(verdict.question)}</div>'
    return (
        f'<div class="maiprof-verdict">{question}'
        f'<b class="maiprof-figure">{escaping.text(verdict.figure)}</b>'
        f"<div>{escaping.text(verdict.meaning)}</div>{attempt}{trust}</div>"
    )
