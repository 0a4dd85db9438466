"""What each device did in the time shown, in parts that sum to it."""

from __future__ import annotations

import ipywidgets
import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis.device_activity import breakdown
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.session import Session
from maiprof_widgets import escaping
from maiprof_widgets.figures.theme import theme
from maiprof_widgets.link import LinkState
from maiprof_widgets.views.delayed import Delayed
from maiprof_widgets.views.status import StatusLine

_QUIET_S = 0.15  # a drag in another view asks many times a second
MAX_DEVICES = 64
_IDLE = "idle"
_PARTS = {
    "compute": "compute_ns",
    "exposed communication": "exposed_communication_ns",
    "exposed copies": "exposed_copy_ns",
    _IDLE: "idle_ns",
}


class BreakdownView(ipywidgets.VBox):
    """Compute, exposed communication, exposed copies and idle, a bar a device.

    Reads ``link.window`` (the recorded steps where it is None), ``link.ranks`` and
    ``link.dark``.

    Parameters
    ----------
    session : Session
        What was recorded.
    link : LinkState
        Shared with the other views.

    Attributes
    ----------
    found : DataFrame
        The rows of `maiprof_nb.analysis.breakdown` that are shown.
    """

    def __init__(self, session: Session, link: LinkState) -> None:
        self.session, self.link = session, link
        self.status, self.bars = StatusLine(), ipywidgets.HTML()
        self.bars.layout.width = "100%"
        self.found = pd.DataFrame()
        self._fill()
        super().__init__([self.bars, self.status])
        self.add_class("maiprof-curves")
        later = Delayed(self._fill, _QUIET_S)
        link.observe(lambda _change: later.request(), ["window", "ranks", "dark"])

    def _fill(self) -> None:
        text = ""
        with self.status.guard():
            text = self._text()
        self.bars.value = text

    def _text(self) -> str:
        window, ranks = self.link.window, self.link.ranks
        found = breakdown(self.session, window)
        if ranks is not None:
            found = found[found["rank"].isna() | found["rank"].isin(ranks)]
        if found.empty:
            raise NotAnswerableError(
                "no device of the ranks shown did anything", remedy="Choose other ranks"
            )
        self.found = found
        where = figure_window(self.session)
        span, why = (where.window, where.reason) if window is None else (window, "the time shown")
        rows = "".join(self._row(row) for _, row in found.head(MAX_DEVICES).iterrows())
        more = len(found) - MAX_DEVICES
        rest = f"<div>{units.count(more)} more devices are not shown.</div>" if more > 0 else ""
        return (
            f'<div class="maiprof-sub">What each GPU did in {units.duration(span.dur_ns)} '
            f"({escaping.text(why)}); the parts sum to it.</div>"
            f'<table class="maiprof-breakdown"><thead>{self._head()}</thead>'
            f"<tbody>{rows}</tbody></table>{rest}"
        )

    def _head(self) -> str:
        keys = "".join(
            f'<th><i style="background:{colour}"></i>{name}</th>'
            for name, colour in self._colours().items()
        )
        return f"<tr><th></th><th></th>{keys}</tr>"

    def _colours(self) -> dict[str, str]:
        series = theme(dark=self.link.dark).series
        return dict(zip(_PARTS, (series[0], series[1], series[2], "transparent"), strict=True))

    def _row(self, row: pd.Series) -> str:
        whole, pieces = max(int(row["window_ns"]), 1), []
        for name, colour in self._colours().items():
            ns = int(row[_PARTS[name]])
            said = f"{name}: {units.duration(ns)}, {units.percent(ns / whole)}"
            pieces.append(
                f'<span style="width:{100 * ns / whole:.4f}%;background:{colour}" '
                f'title="{said}"></span>'
            )
        shares = "".join(
            f"<td>{units.percent(int(row[column]) / whole)}<small>{units.duration(row[column])}"
            "</small></td>"
            for column in _PARTS.values()
        )
        label = escaping.text(_label(row))
        return f"<tr><th>{label}</th><td><div>{''.join(pieces)}</div></td>{shares}</tr>"


def _label(row: pd.Series) -> str:
    device = "GPU" if pd.isna(row["device"]) else f"GPU {int(row['device'])}"
    return device if pd.isna(row["rank"]) else f"rank {int(row['rank'])}, {device}"
