"""Utilisation, memory and operators of one session, linked."""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets

from maiprof_nb.session import Session
from maiprof_widgets.dashboards import opening
from maiprof_widgets.dashboards.twin import twin_of
from maiprof_widgets.link import LinkState
from maiprof_widgets.views.allocations_made import AllocationsMade
from maiprof_widgets.views.clocks import ClocksView
from maiprof_widgets.views.findings import FindingsView
from maiprof_widgets.views.folded import FoldedView
from maiprof_widgets.views.header import HeaderView
from maiprof_widgets.views.memory import MemoryView
from maiprof_widgets.views.metrics import MetricsView
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
        The views.
    metrics : FoldedView or None
        What samplers measured, folded where there is a trace; None without GPU metrics.
    clocks : FoldedView
        The places of the sources on the axis of time, to change by hand.
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
        metrics = self.metrics is not None and self.metrics.button.value
        self.children = self._views(session, metrics=metrics, clocks=True)

    def _views(
        self, session: Session, *, metrics: bool = False, clocks: bool = False
    ) -> list[ipywidgets.Widget]:
        """The views of a session; `metrics` and `clocks` say which folds are open."""
        link, part = twin_of(self.link)
        self.findings = FindingsView(session, link, compact=True, later=True)
        self.utilisation = UtilisationView(session, link)
        self.memory = MemoryView(session, link)
        self.ranking = RankingView(session, link)
        self.metrics = _metrics(session, link, opened=metrics)
        self.clocks = FoldedView(
            "Move sources in time",
            lambda: ClocksView(session, self.show, save=not opening.in_voila()),
            opened=clocks,
        )
        made = FoldedView(
            "Allocations made in the time shown", lambda: AllocationsMade(self.memory)
        )
        known = [made] if self.memory.device is not None else []
        memory = [self.memory, *known, TrustLine(session, "memory-curve")]
        sampled = [self.metrics] if self.metrics else []
        missing = self.memory.device is None  # what is missing stands behind what is there
        views = [
            PageView(session, link),
            HeaderView(session),
            self.findings,
            self.utilisation,
            TrustLine(session, "gpu-utilisation"),
            *(sampled + memory if missing else memory + sampled),
            self.ranking,
            TrustLine(session, "operator-times", "operator-device-times"),
            SourcesView(session),
            self.clocks,
        ]
        if self._part is not None:  # only now: the old views hear nothing of a failed change
            self._part()
        self._part, self.session = part, session
        return views


def _made(memory: MemoryView) -> list[ipywidgets.Widget]:
    if memory.device is None:
        return []
    return [FoldedView("Allocations made in the time shown", lambda: AllocationsMade(memory))]


def _metrics(session: Session, link: LinkState, *, opened: bool) -> FoldedView | None:
    if session.table("counters").empty:
        return _from_the_trace(session, link, opened=opened)
    alone = all(recording.kind == "metrics" for recording in session.recordings)
    return FoldedView(
        "GPU metrics beside the job (sampled)",
        lambda: MetricsView(session, link),
        opened=opened or alone,
        beneath=lambda: TrustLine(session, "metrics"),
    )


def _from_the_trace(session: Session, link: LinkState, *, opened: bool) -> FoldedView | None:
    if not session.table("kernels")["kind"].isin(["compute", "communication"]).any():
        return None
    return FoldedView(
        "SM efficiency, occupancy and Tensor Cores (from the trace)",
        lambda: MetricsView(session, link),
        opened=opened,
        beneath=lambda: TrustLine(session, "gpu-utilisation"),
    )
