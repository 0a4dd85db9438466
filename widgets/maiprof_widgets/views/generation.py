"""Prefill and decode of a model that generates text, over time and in figures."""

from __future__ import annotations

from typing import Any

import ipywidgets
import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis.generation import generation
from maiprof_nb.analysis.generation_stages import generation_stages
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow
from maiprof_widgets.figures.generation import generation_panels
from maiprof_widgets.figures.panels import Panel
from maiprof_widgets.figures.theme import theme
from maiprof_widgets.link import LinkState
from maiprof_widgets.views._grid import grid
from maiprof_widgets.views.curves import CurvesView

_HEAD = (
    "Stage", "Passes", "Tokens", "Tokens/s", "Pass on the host, median",
    "To the end of its device work, median", "GPU busy meanwhile", "Device time, summed",
    "Launches a pass", "Kernels a pass",
)  # fmt: skip
_HINT = (
    '<div class="maiprof-sub">Prefill takes the tokens of whole prompts in one wide pass; decode '
    "makes one token a request in each of many narrow ones. Tokens/s is over the passes, not the "
    "time between them. Click a pass: all views show it.</div>"
)


class GenerationView(CurvesView):
    """Passes of `generation` as bars, and the figures of `generation_stages`.

    Reads ``link.window``, ``link.ranks`` (the first of them is shown) and ``link.dark``; sets
    ``link.window``, also to a pass that is clicked.
    """

    def __init__(self, session: Session, link: LinkState) -> None:
        super().__init__(session, link)
        for trace in self.figure.data:
            trace.on_click(self._on_click)
        link.observe(lambda _change: self.redraw(), "ranks")

    def panels(self, window: TimeWindow) -> list[Panel]:
        """The stages, and the length of each pass."""
        return generation_panels(self._passes(), window, theme(dark=self.link.dark).series)

    def beneath(self) -> list[ipywidgets.Widget]:
        """The figures of each stage."""
        if self.status.value:
            return []
        found = generation_stages(self.session)
        several = found["recording"].iloc[0] != found["recording"].iloc[-1]
        head = ("Rank", *_HEAD) if several else _HEAD
        rows = [([str(row.rank)] if several else []) + _cells(row) for row in found.itertuples()]
        by = generation(self.session)["recognised_by"].iloc[0]
        said = f'<div class="maiprof-sub">Told apart by {by}.</div>'
        return [ipywidgets.HTML(grid(head, rows) + said + _HINT)]

    def _passes(self) -> pd.DataFrame:
        """Passes of one recording: of the first rank looked at."""
        found, ranks = generation(self.session), self.link.ranks
        rows = found[found["rank"].isin(ranks)] if ranks else found
        rows = rows if len(rows) else found
        return rows[rows["recording"] == rows["recording"].iloc[0]]

    def _on_click(self, trace: Any, points: Any, _state: Any) -> None:
        """A bar is two points and a break."""
        if not points.point_inds:
            return
        with self.status.guard():
            first = 3 * (points.point_inds[0] // 3)
            self.link.window = self.scale.window(trace.x[first], trace.x[first + 1])


def _cells(row: Any) -> list[str]:
    known = not pd.isna(row.tokens)
    return [
        row.stage,
        units.count(row.passes),
        units.count(row.tokens) if known else "not stated",
        units.count(row.tokens_per_s) if known else "not stated",
        units.duration(row.median_ns),
        units.duration(row.median_end_ns),
        units.percent(row.busy_share),
        units.duration(row.device_ns),
        units.count(row.launches / row.passes),
        units.count(row.kernels_per_pass),
    ]
