"""What costs time or memory, in words, with the change to try and the rows behind it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import anywidget
import traitlets

from maiprof_nb.errors import MaiprofError
from maiprof_nb.findings.diagnosis import diagnose, importance
from maiprof_nb.findings.finding import Finding
from maiprof_nb.findings.rules import RULES
from maiprof_nb.session import Session
from maiprof_widgets.link import LinkState, Selection
from maiprof_widgets.views import _finding_words as words
from maiprof_widgets.views._static import module, styles
from maiprof_widgets.views.status import sentence_of

_LOG = logging.getLogger(__name__)
_PAUSE_S = 0.02  # between two rules, for what the reader does meanwhile


class FindingsView(anywidget.AnyWidget):
    """The findings as cards, dearest first; what passed or does not apply is folded.

    Parameters
    ----------
    session : Session
        What to diagnose.
    link : LinkState, optional
        What is looked at, shared with other views; of its own by default.
    rules : sequence of str, optional
        Ids to ask; all by default.
    compact : bool
        Cards show title, cost and the change to try, and all but the dearest are folded.
    later : bool
        Ask once the page is there, one rule after another, so that the other views answer
        meanwhile.

    Attributes
    ----------
    session, link
        As given.
    findings : list of Finding
        The outcomes so far.
    status : str
        What went wrong last, as a sentence; empty when nothing did.

    Notes
    -----
    A click on a row of evidence sets ``link.window`` round it if it has a place in time (a gap,
    a step), else ``link.selection`` if it has a name.
    """

    _esm = module("findings.js")
    _css = styles("views.css", "findings.css")

    cards: traitlets.List[Any] = traitlets.List().tag(sync=True)
    headline = traitlets.Unicode("").tag(sync=True)
    aside = traitlets.Unicode("").tag(sync=True)
    compact = traitlets.Bool(default_value=False).tag(sync=True)
    waiting = traitlets.Int(0).tag(sync=True)
    theme = traitlets.Enum(("auto", "light", "dark"), default_value="auto").tag(sync=True)
    status = traitlets.Unicode("").tag(sync=True)

    def __init__(
        self,
        session: Session,
        link: LinkState | None = None,
        *,
        rules: Sequence[str] | None = None,
        compact: bool = False,
        later: bool = False,
        **traits: Any,
    ) -> None:
        self.session, self.link = session, link or LinkState()
        self.findings: list[Finding] = []
        self._open = [rule.id for rule in RULES] if rules is None else list(rules)
        super().__init__(compact=compact, **traits)
        self.on_msg(self._received)
        if later and _in_a_loop():
            self._tell()  # the browser says when it is there
        else:
            self._ask(self._open)

    def _ask(self, rules: list[str]) -> None:
        try:
            self.findings += diagnose(self.session, rules=rules)
        except MaiprofError as problem:
            self.status = sentence_of(problem)
        except Exception as problem:  # noqa: BLE001 - a view must never die silently
            _LOG.warning("the findings view failed", exc_info=True)
            self.status = f"This view failed ({type(problem).__name__}: {problem})."
        self._open = [rule for rule in self._open if rule not in rules]
        self._tell()

    def _tell(self) -> None:
        self.findings.sort(key=importance)
        with self.hold_sync():
            self.waiting = len(self._open)
            self.headline = words.headline(self.findings, self.waiting)
            self.aside = words.aside(self.findings, self.waiting)
            self.cards = [words.card(one, self.session) for one in self.findings]

    def _next(self) -> None:
        if not self._open:
            return
        self._ask(self._open[:1])
        asyncio.get_running_loop().call_later(_PAUSE_S, self._next)

    def _received(self, _widget: Any, content: Any, _buffers: Any) -> None:
        kind = content.get("kind") if isinstance(content, dict) else None
        if kind == "ready" and self._open:
            if _in_a_loop():
                asyncio.get_running_loop().call_later(_PAUSE_S, self._next)
            else:
                self._ask(self._open)
        elif kind == "evidence":
            self._look(str(content.get("rule")), int(content.get("row", -1)))

    def _look(self, rule: str, number: int) -> None:
        found = next((one for one in self.findings if one.rule == rule), None)
        if found is None or not 0 <= number < len(found.evidence):
            return
        row = found.evidence[number]
        window, chosen = words.window_of(row, self.session), words.selection_of(row)
        if chosen is not None:
            self.link.selection = Selection(chosen[0], name=chosen[1], recording=chosen[2])
        if window is not None:
            self.link.window = window


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
