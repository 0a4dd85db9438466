"""What the loop does: phases of training, or passes of a model that generates."""

from __future__ import annotations

import ipywidgets

from maiprof_nb.analysis.generation import generates
from maiprof_nb.session import Session
from maiprof_widgets.link import LinkState
from maiprof_widgets.views.generation import GenerationView
from maiprof_widgets.views.phase_steps import PhaseStepsView
from maiprof_widgets.views.phases import PhasesView


class LoopView(ipywidgets.VBox):
    """Prefill and decode where the recording shows them without training; else the phases.

    Parameters
    ----------
    session : Session
        What was recorded.
    link : LinkState
        Shared with the other views.
    """

    def __init__(self, session: Session, link: LinkState) -> None:
        kinds = [GenerationView] if generates(session) else [PhasesView, PhaseStepsView]
        super().__init__([view(session, link) for view in kinds])
        self.add_class("maiprof-curves")
