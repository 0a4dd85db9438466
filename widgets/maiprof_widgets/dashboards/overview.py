"""Utilisation, memory and operators of one session, linked."""

from __future__ import annotations

import ipywidgets

from maiprof_nb.session import Session
from maiprof_widgets.link import LinkState
from maiprof_widgets.views.header import HeaderView
from maiprof_widgets.views.memory import MemoryView
from maiprof_widgets.views.page import PageView
from maiprof_widgets.views.ranking import RankingView
from maiprof_widgets.views.sources import SourcesView
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
    link : LinkState
        What is looked at: set its window or selection from code, and every view follows.
    utilisation, memory, ranking
        The views.
    """

    def __init__(self, session: Session, link: LinkState | None = None) -> None:
        self.link = link or LinkState()
        self.utilisation = UtilisationView(session, self.link)
        self.memory = MemoryView(session, self.link)
        self.ranking = RankingView(session, self.link)
        super().__init__(
            [
                PageView(session, self.link),
                HeaderView(session),
                self.utilisation,
                self.memory,
                self.ranking,
                SourcesView(session),
            ]
        )
        self.add_class("maiprof-dashboard")
