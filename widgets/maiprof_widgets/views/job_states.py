"""What each change did to a job: speed, idle time, phases."""

from __future__ import annotations

from collections.abc import Mapping

import ipywidgets
import pandas as pd
import plotly.graph_objects as go

from maiprof_nb import units
from maiprof_nb.analysis.job_states import job_states
from maiprof_nb.session import Session
from maiprof_widgets import escaping
from maiprof_widgets.figures.job_states import job_states_figure
from maiprof_widgets.link import LinkState
from maiprof_widgets.views._plot import FitView, figure_widget, repainted
from maiprof_widgets.views.status import StatusLine


class JobStatesView(ipywidgets.VBox):
    """A table and bars of `maiprof_nb.analysis.job_states`. Reads ``link.dark``.

    Parameters
    ----------
    states : Mapping of str to Session
        Recordings of one job, in the order of the changes.
    rows_per_step : Mapping of str to float
        How much work a step is in each.
    link : LinkState
        Shared with the other views.
    """

    def __init__(
        self, states: Mapping[str, Session], rows_per_step: Mapping[str, float], link: LinkState
    ) -> None:
        self.link = link
        self.status = StatusLine()
        self.found = pd.DataFrame()
        shown: list[ipywidgets.Widget] = []
        with self.status.guard():
            self.found = job_states(states, rows_per_step)
            self.figure = figure_widget(self._figure())
            shown = [ipywidgets.HTML(_table(self.found)), FitView(), self.figure]
            link.observe(lambda _change: self._repaint(), "dark")
        super().__init__([*shown, self.status])
        self.add_class("maiprof-curves")

    def _figure(self) -> go.Figure:
        return job_states_figure(self.found, dark=self.link.dark)

    def _repaint(self) -> None:
        with self.status.guard():
            repainted(self.figure, self._figure())


def _table(found: pd.DataFrame) -> str:
    head = "".join(
        f"<th>{title}</th>"
        for title in ("State", "Steps", "Rows/s", "Speed", "GPU idle", "Tensor Core time, by name")
    )
    body = "".join(
        f"<tr><td>{escaping.text(row.state)}</td><td>{units.count(row.steps)}</td>"
        f"<td>{row.rows_per_s / 1e3:,.0f} k</td><td>{row.speed:.2f} x</td>"
        f"<td>{units.percent(row.idle_share)}</td><td>{units.percent(row.tensor_core_share)}</td></tr>"
        for row in found.itertuples()
    )
    return (
        f'<div class="maiprof-sources"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
