"""Utilisation, memory and operators of one session, linked."""

from __future__ import annotations

import ipywidgets

from maiprof_nb.session import Session
from maiprof_widgets.link import LinkState
from maiprof_widgets.views.folded import FoldedView
from maiprof_widgets.views.header import HeaderView
from maiprof_widgets.views.memory import MemoryView
from maiprof_widgets.views.metrics import MetricsView
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
    metrics : FoldedView or None
        What samplers measured, folded where there is a trace; None without GPU metrics.
    """

    def __init__(self, session: Session, link: LinkState | None = None) -> None:
        self.link = link or LinkState()
        self.utilisation = UtilisationView(session, self.link)
        self.memory = MemoryView(session, self.link)
        self.ranking = RankingView(session, self.link)
        self.metrics = _metrics(session, self.link)
        views = [self.utilisation, self.memory, *([self.metrics] if self.metrics else [])]
        if self.memory.device is None:  # what is missing stands behind what is there
            views.append(views.pop(1))
        super().__init__(
            [
                PageView(session, self.link),
                HeaderView(session),
                *views,
                self.ranking,
                SourcesView(session),
            ]
        )
        self.add_class("maiprof-dashboard")


def _metrics(session: Session, link: LinkState) -> FoldedView | None:
    counters = session.table("counters")
    if counters.empty:
        return None
    alone = all(recording.kind == "metrics" for recording in session.recordings)
    return FoldedView(
        "GPU metrics beside the job (sampled)", lambda: MetricsView(session, link), opened=alone
    )
