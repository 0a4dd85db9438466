"""Matrix products, convolutions and attention beneath the roofs of their device."""

from __future__ import annotations

from typing import Any

import ipywidgets
import pandas as pd
import plotly.graph_objects as go

from maiprof_nb import units
from maiprof_nb.analysis.device_peaks import Peaks, known_peaks
from maiprof_nb.analysis.roofline import roofline
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.session import Session
from maiprof_widgets import escaping
from maiprof_widgets.figures.roofline import roofline_figure
from maiprof_widgets.link import LinkState, Selection
from maiprof_widgets.views._choice_table import ChoiceTable
from maiprof_widgets.views._plot import FitView, figure_widget, repainted
from maiprof_widgets.views.delayed import Delayed
from maiprof_widgets.views.status import StatusLine

MAX_ROWS = 500
_QUIET_S = 0.15


class RooflineView(ipywidgets.VBox):
    """A plot and a table of `maiprof_nb.analysis.roofline.roofline`.

    Reads ``link.window``, ``link.ranks``, ``link.selection`` and ``link.dark``; a click on a
    point or a row sets ``link.selection`` to its operator.

    Parameters
    ----------
    session : Session
        What was recorded.
    link : LinkState
        Shared with the other views.

    Attributes
    ----------
    found : DataFrame
        The rows shown, those of most device time first.
    peaks : Peaks or None
        Whose roofs are drawn: those of the device with most work in these operators.
    """

    def __init__(self, session: Session, link: LinkState) -> None:
        self.session, self.link = session, link
        self.status = StatusLine()
        self.peaks: Peaks | None = None
        shown: list[ipywidgets.Widget] = []
        with self.status.guard():
            self.found = roofline(session)
            self.peaks = _peaks_of(self.found)
            self.words = ipywidgets.HTML()
            self._ask()
            self.figure = figure_widget(self._figure())
            for trace in self.figure.data:
                trace.on_click(self._on_click)
            self.table = ChoiceTable(link, _shown(self.found), self._names(), text_columns=3)
            plot = ipywidgets.VBox([FitView(), self.figure])
            beside = ipywidgets.Box([plot, self.table])
            beside.add_class("maiprof-beside")
            shown = [self.words, beside]
            later = Delayed(self._refresh, _QUIET_S)
            link.observe(lambda _change: later.request(), ["window", "ranks"])
            link.observe(lambda _change: self._repaint(), ["selection", "dark"])
        super().__init__([*shown, self.status])
        self.add_class("maiprof-curves")

    def _ask(self) -> None:
        """Find the rows of what is looked at now, and the words about them."""
        try:
            rows = roofline(self.session, window=self.link.window)
        except NotAnswerableError as problem:
            rows = self.found.head(0)
            self.words.value = f'<div class="maiprof-sub">{escaping.text(problem.sentence)}</div>'
        else:
            ranks = self.link.ranks
            rows = rows[rows["rank"].isin(ranks)] if ranks else rows
            self.words.value = _words(rows, self.peaks)
        self.found = rows.head(MAX_ROWS).reset_index(drop=True)

    def _refresh(self) -> None:
        with self.status.guard():
            self._ask()
            repainted(self.figure, self._figure())
            self.table.show(_shown(self.found), self._names())

    def _repaint(self) -> None:
        with self.status.guard():
            repainted(self.figure, self._figure())

    def _figure(self) -> go.Figure:
        selection = self.link.selection
        chosen = selection.name if selection and selection.table == "operators" else None
        self.points = self.found[self.found["intensity"].notna()].reset_index(drop=True)
        return roofline_figure(self.points, self.peaks, chosen, dark=self.link.dark)

    def _names(self) -> list[str]:
        return self.found["name"].astype("str").tolist()

    def _on_click(self, trace: Any, points: Any, _state: Any) -> None:
        if not points.point_inds or trace.customdata is None:
            return
        with self.status.guard():
            row = int(trace.customdata[points.point_inds[0]])
            self.link.selection = Selection("operators", name=str(self.points["name"].iloc[row]))


def _peaks_of(found: pd.DataFrame) -> Peaks | None:
    """Of the kind of device with most work in these operators."""
    time = found.groupby("peaks")["device_ns"].sum()
    known = {peaks.device: peaks for peaks in known_peaks()}
    return known[str(time.idxmax())] if len(time) else None


def _words(found: pd.DataFrame, peaks: Peaks | None) -> str:
    said = [
        "Operations are those that the shapes ask for (theoretical, not counted), bytes each "
        "input and output once. Size of a point: device time. Click a point or a row: all views "
        "show that operator.",
        *_about_devices(found, peaks),
    ]
    held = found.groupby(["recording", "device"], dropna=False)["share"].sum()
    if len(held):
        some = units.percent(held.min())
        some = some if len(held) == 1 else f"{some} to {units.percent(held.max())}"
        said.append(
            f"These operators hold {some} of the device's work; the rest is other work, or was "
            "launched without recorded shapes."
        )
    without = int(found["intensity"].isna().sum())
    if without:
        said.append(
            f"{without} of {len(found)} rows have no recorded types of their inputs, so no bytes: "
            "they stand in the table only."
        )
    if len(found) > MAX_ROWS:
        said.append(f"Of {units.count(len(found))} rows the {MAX_ROWS} of most device time.")
    return "".join(f'<div class="maiprof-sub">{escaping.text(text)}</div>' for text in said)


def _about_devices(found: pd.DataFrame, peaks: Peaks | None) -> list[str]:
    names = sorted({name or "a device the trace does not name" for name in found["device_name"]})
    if peaks is None:
        return [f"No roofs: the peaks of {', '.join(names)} are not known."]
    said = [
        f"Roofs: {peaks.device}, peak rates without sparsity; solid where a point is held against "
        f"them. Source: {peaks.source}."
    ]
    others = sorted(set(found["peaks"].dropna()) - {peaks.device})
    if others:
        said.append(f"Rows of {', '.join(others)} are held against their own peaks, not drawn.")
    return said


def _shown(rows: pd.DataFrame) -> pd.DataFrame:
    shown: dict[str, object] = {
        "Operator": [escaping.visible(name) for name in rows["name"].astype("str")],
        "Type": [kind if isinstance(kind, str) else "" for kind in rows["arithmetic"]],
        "Bound by": [bound if isinstance(bound, str) else "" for bound in rows["bound"]],
        "m": rows["m"],
        "n": rows["n"],
        "k": rows["k"],
        "Calls": rows["calls"],
        "Share of device's work (%)": (rows["share"] * 100).round(2),
        "TFLOP/s": rows["tflops"].round(2),
        "Of its roof (%)": (rows["roof_share"] * 100).round(1),
    }
    if rows[["recording", "device"]].drop_duplicates().shape[0] > 1:
        shown["Device"] = rows["device"].astype("str")
        shown["Rank"] = rows["rank"].astype("str")
    return pd.DataFrame(shown).reset_index(drop=True)
