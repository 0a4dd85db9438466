"""Utilisation, memory and operators of one session, linked."""

from __future__ import annotations

from collections.abc import Callable, Collection

import ipywidgets

from maiprof_nb.session import Session
from maiprof_widgets.dashboards import opening
from maiprof_widgets.dashboards.folds import Fold, memory_folds, step_folds
from maiprof_widgets.dashboards.twin import twin_of
from maiprof_widgets.link import LinkState
from maiprof_widgets.views.breakdown import BreakdownView
from maiprof_widgets.views.clocks import ClocksView
from maiprof_widgets.views.findings import FindingsView
from maiprof_widgets.views.folded import FoldedView
from maiprof_widgets.views.header import HeaderView
from maiprof_widgets.views.memory import MemoryView
from maiprof_widgets.views.page import PageView
from maiprof_widgets.views.ranking import RankingView
from maiprof_widgets.views.sources import SourcesView
from maiprof_widgets.views.trust import TrustLine
from maiprof_widgets.views.utilisation import UtilisationView


class Overview(ipywidgets.VBox):
    """The linked dashboard.

    Parameters
    ----------
    session : Session
        What to show.
    link : LinkState, optional
        Shared with views elsewhere on the page; of its own by default.

    Attributes
    ----------
    session : Session
        What is shown, as it lies now.
    link : LinkState
        What is looked at: set its window or selection from code, and every view follows.
    findings, utilisation, memory, ranking
        The views that are always there.
    folds : dict of str to FoldedView
        The others, made when opened: ``idle`` (step 2), ``metrics`` and ``roofline`` (step 3),
        ``loop`` and ``launches`` (step 4), where the recordings can show them, and ``clocks``
        (the places of the sources on the axis of time, to change by hand).
    """

    def __init__(self, session: Session, link: LinkState | None = None) -> None:
        self.link = link or LinkState()
        self._part: Callable[[], None] | None = None
        super().__init__(self._views(session))
        self.add_class("maiprof-dashboard")

    def show(self, session: Session) -> None:
        """Show another session of the same recordings in place of this one.

        The window stays, unless nothing lies there any more.
        """
        window = self.link.window
        if window is not None and not window.intersect(session.span).dur_ns:
            self.link.window = None
        opened = {key for key, fold in self.folds.items() if fold.button.value}
        self.children = self._views(session, opened={*opened, "clocks"})

    def _views(self, session: Session, *, opened: Collection[str] = ()) -> list[ipywidgets.Widget]:
        """The views of a session; `opened` says which folds are open."""
        link, part = twin_of(self.link)
        self.findings = FindingsView(session, link, compact=True, later=True)
        self.utilisation = UtilisationView(session, link)
        self.memory = MemoryView(session, link)
        self.ranking = RankingView(session, link)
        self.folds: dict[str, FoldedView] = {}
        steps = self._folded(step_folds(session, link), opened)
        memory = [
            self.memory,
            TrustLine(session, "memory-curve"),
            *self._folded(memory_folds(session, link, self.memory), opened),
        ]
        missing = self.memory.device is None  # what is missing stands behind what is there
        use = [self.utilisation, TrustLine(session, "gpu-utilisation")]
        if not session.table("kernels").empty:
            use.append(BreakdownView(session, link))
        alone = all(one.kind in ("snapshot", "timeline") for one in session.recordings)
        views = [
            PageView(session, link),
            HeaderView(session),
            self.findings,
            *([] if alone else use),
            *(steps + memory if missing else memory + steps),
            *(use if alone else []),
            self.ranking,
            TrustLine(session, "operator-times", "operator-device-times"),
            SourcesView(session),
            *self._folded([self._clocks(session)], opened),
        ]
        if self._part is not None:  # only now: the old views hear nothing of a failed change
            self._part()
        self._part, self.session = part, session
        return views

    def _folded(self, folds: list[Fold], opened: Collection[str]) -> list[ipywidgets.Widget]:
        made = {fold.key: fold.view(opened=fold.key in opened) for fold in folds}
        self.folds |= made
        return list(made.values())

    def _clocks(self, session: Session) -> Fold:
        return Fold(
            "clocks",
            "Move sources in time",
            (lambda: ClocksView(session, self.show, save=not opening.in_voila()),),
        )
