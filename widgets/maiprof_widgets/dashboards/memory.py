"""Everything about the memory of one session, linked."""

from __future__ import annotations

import ipywidgets

from maiprof_nb.findings.rules import RULES
from maiprof_nb.session import Session
from maiprof_widgets.dashboards.folds import memory_folds
from maiprof_widgets.link import LinkState
from maiprof_widgets.views.findings import FindingsView
from maiprof_widgets.views.header import HeaderView
from maiprof_widgets.views.memory import MemoryView
from maiprof_widgets.views.memory_peak import MemoryPeakView
from maiprof_widgets.views.page import PageView
from maiprof_widgets.views.sources import SourcesView
from maiprof_widgets.views.trust import TrustLine

MEMORY_RULES = tuple(rule.id for rule in RULES if rule.view == "memory")


class MemoryDashboard(ipywidgets.VBox):
    """The timeline, who held the peak, and what grew.

    Parameters
    ----------
    session : Session
        What to show.
    link : LinkState, optional
        Shared with views elsewhere on the page; of its own by default.

    Attributes
    ----------
    session : Session
        What is shown.
    link : LinkState
        What is looked at.
    findings, memory, peak
        The views.
    folds : dict of FoldedView
        What is made when it is opened: allocations made, segments, growth.
    """

    def __init__(self, session: Session, link: LinkState | None = None) -> None:
        self.session, self.link = session, link or LinkState()
        link = self.link
        self.findings = FindingsView(session, link, rules=MEMORY_RULES, compact=True, later=True)
        self.memory = MemoryView(session, link)
        self.peak = MemoryPeakView(session, link)
        self.folds = {
            fold.key: fold.view(opened=False)
            for fold in memory_folds(session, link, self.memory)
            if fold.key != "peak"
        }
        self.memory.observe(lambda _change: self.peak.device.choose(self.memory.device), "about")
        super().__init__(
            [
                PageView(session, link),
                HeaderView(session),
                self.findings,
                self.memory,
                TrustLine(session, "memory-curve"),
                self.peak,
                TrustLine(session, "memory-peak"),
                *self.folds.values(),
                SourcesView(session),
            ]
        )
        self.add_class("maiprof-dashboard")
