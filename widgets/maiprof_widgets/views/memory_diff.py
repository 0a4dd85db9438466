"""What grew between two moments, of one log or of two."""

from __future__ import annotations

from typing import Any

import ipywidgets
import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis.active_memory import MemoryDevice, memory_log
from maiprof_nb.analysis.memory_diff import Moment, diff_of
from maiprof_nb.errors import NotAnswerableError, UsageError
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow
from maiprof_widgets.link import LinkState, Selection
from maiprof_widgets.views import _diff_words as words
from maiprof_widgets.views.delayed import Delayed
from maiprof_widgets.views.memory_device import WIDE, device_options
from maiprof_widgets.views.status import StatusLine
from maiprof_widgets.views.table import HeaderSort, column_sides, paged_table

MAX_ROWS = 500
_QUIET_S = 0.25
_MOMENTS = {
    "start": "start of the log",
    "end": "end of the log",
    "peak": "peak",
    "moment": "moment pointed at",
    "window start": "start of the time shown",
    "window end": "end of the time shown",
}
_LINKED = ("moment", "window start", "window end")
_HINT = (
    '<div class="maiprof-sub">Largest growth first. Stacks are matched by their frames. A click '
    "on a row shows its stack and marks it in the memory timeline.</div>"
)

_ONE_MOMENT = "this snapshot holds one moment only, so there is nothing to compare it with"
_TWO = (
    "Load the folder of two dumps, or record the way between them with "
    "torch.cuda.memory._record_memory_history"
)


class MemoryDiffView(ipywidgets.VBox):
    """Verdict and table of two moments: before, after and grown, by stack, line or category.

    Follows ``link.window`` and ``link.moment_ns`` where a side asks for them; sets
    ``link.selection`` (table ``stacks``) by a click.

    Parameters
    ----------
    session : Session
        What was recorded; a side may be any memory in it.
    link : LinkState
        Shared with the other views.
    after : Session, optional
        Another session, whose memories may be compared with those of the first.

    Attributes
    ----------
    before, after : Side
        What is compared: set ``source.value`` and ``when.value``.
    by : ToggleButtons
        ``stack``, ``line`` or ``category``.
    found : DataFrame
        As `maiprof_nb.analysis.memory_diff` gives it.
    """

    def __init__(self, session: Session, link: LinkState, after: Session | None = None) -> None:
        self.session, self.link = session, link
        self.status = StatusLine()
        self.found = pd.DataFrame()
        self._moments: tuple[Moment, Moment] | None = None
        self._updating = False
        sessions = [session] if after is None else [session, after]
        self.before = Side("Before", sessions, link, "start")
        self.after = Side("After", sessions, link, "end")
        first, last = self.before.source.value, self._counterpart()
        if last is not None and last != first:
            self.after.source.value, self.before.when.value = last, "end"
        self.by = ipywidgets.ToggleButtons(
            options=[("stack", "stack"), ("line", "line"), ("category", "category")],
            style={"button_width": "auto"},
        )
        self.verdict, self.chosen = ipywidgets.HTML(), ipywidgets.HTML()
        self.table = paged_table(pd.DataFrame({"": []}), select="single", selected_rows=[])
        by = ipywidgets.HBox(
            [ipywidgets.HTML("Compared by"), self.by],
            layout={"flex_flow": "row wrap", "align_items": "center", "grid_gap": "4px 10px"},
        )
        self._parts = ipywidgets.VBox(
            [self.verdict, by, self.table, HeaderSort(), self.chosen, ipywidgets.HTML(_HINT)],
            layout={"overflow": "visible"},
        )
        super().__init__([self.before, self.after, self._parts, self.status])
        self.add_class("maiprof-diff")
        self.refresh()
        for side in (self.before, self.after):
            side.source.observe(lambda _change: self.refresh(), "value")
            side.when.observe(lambda _change: self.refresh(), "value")
        self.by.observe(lambda _change: self.refresh(), "value")
        self.table.observe(self._on_row, "selected_rows")
        later = Delayed(self._follow, _QUIET_S)
        link.observe(lambda _change: later.request(), ("window", "moment_ns"))

    def refresh(self) -> None:
        """Compare what is asked for now."""
        self._moments, self.found = None, pd.DataFrame()
        with self.status.guard():
            before, after = self.before.moment(), self.after.moment()
            if before.log is after.log and before.log.device.axis == "state":
                raise NotAnswerableError(_ONE_MOMENT, remedy=_TWO)
            self._moments = before, after
            self.found = diff_of(before, after, by=self.by.value).head(MAX_ROWS)
            names = self.before.words, self.after.words
            lines = diff_of(before, after, by="line")
            self.verdict.value = words.verdict(before, after, names, lines)
            self._show(words.table(self.found, self.by.value, before, after))
        self._parts.layout.display = None if self._moments else "none"

    def _counterpart(self) -> Any:
        """The last source with a memory of the same kind as the first; None without any."""
        options = [value for _, value in self.before.source.options]
        first = options[0] if options else None
        like = [one for one in options if first is not None and _same(one[1], first[1])]
        return like[-1] if like else None

    def _show(self, shown: pd.DataFrame) -> None:
        self._updating = True
        try:
            self.table.update(
                shown, selected_rows=[], order=[], columnDefs=column_sides(1, shown.shape[1])
            )
        finally:
            self._updating = False
        self.chosen.value = ""

    def _follow(self) -> None:
        if {self.before.when.value, self.after.when.value} & set(_LINKED):
            self.refresh()

    def _on_row(self, change: Any) -> None:
        if self._updating or self._moments is None:
            return
        with self.status.guard():
            rows = change["new"]
            if not rows:
                self.chosen.value, self.link.selection = "", None
                return
            row = self.found.iloc[int(rows[0])]
            self.chosen.value = words.frames(row, *self._moments)
            self.link.selection = self._selection_of(row)

    def _selection_of(self, row: pd.Series) -> Selection | None:
        sides = ((self.after, "after_stack"), (self.before, "before_stack"))
        for side, column in sides:
            if side.session is self.session and not pd.isna(row[column]):
                recording = side.moment().log.device.recording
                return Selection("stacks", row=int(row[column]), recording=recording)
        return None


class Side(ipywidgets.HBox):
    """One of the two moments: whose memory, and when.

    Parameters
    ----------
    title : str
        What it is called.
    sessions : list of Session
        Where its memory may come from.
    link : LinkState
        For the moment pointed at and the time shown.
    when : str
        The moment chosen first.
    """

    def __init__(self, title: str, sessions: list[Session], link: LinkState, when: str) -> None:
        self._sessions, self._link = sessions, link
        options = [
            (label if len(sessions) == 1 else f"{_NAMES[number]}: {label}", (number, device))
            for number, session in enumerate(sessions)
            for label, device in device_options(session)
        ]
        self.source = ipywidgets.Dropdown(options=options, layout=dict(WIDE))
        self.source.layout.display = None if len(options) > 1 else "none"
        self.when = ipywidgets.Dropdown(
            options=[(text, key) for key, text in _MOMENTS.items()],
            value=when,
            layout=dict(WIDE),
        )
        heading = ipywidgets.HTML(f"<b>{title}</b>", layout={"width": "60px"})
        super().__init__(
            [heading, self.source, self.when],
            layout={"flex_flow": "row wrap", "align_items": "center"},
        )
        self._hide()
        self.source.observe(lambda _change: self._hide(), "value")

    @property
    def _one_moment(self) -> bool:
        return self.source.value is not None and self.source.value[1].axis == "state"

    def _hide(self) -> None:
        self.when.layout.display = "none" if self._one_moment else None
        nothing = self._one_moment and len(self.source.options) == 1  # to choose here
        self.layout.display = "none" if nothing else None

    @property
    def session(self) -> Session | None:
        """Where the memory comes from."""
        return None if self.source.value is None else self._sessions[self.source.value[0]]

    @property
    def words(self) -> str:
        """The moment in words."""
        when = _MOMENTS[self.when.value]
        if self._one_moment:
            return str(self.source.label)
        several = len(self.source.options) > 1
        return f"the {when} of {self.source.label}" if several else f"the {when}"

    def moment(self) -> Moment:
        """What is chosen.

        Raises
        ------
        NotAnswerableError
            If no memory was recorded, or nothing is pointed at.
        UsageError
            If the moment lies outside the log.
        """
        if self.session is None:
            raise NotAnswerableError(
                "no memory was recorded in this session",
                remedy="Record a snapshot (torch.cuda.memory._record_memory_history, then "
                "_dump_snapshot) or profile with profile_memory=True",
            )
        log = memory_log(self.session, self.source.value[1])
        if self._one_moment:
            return Moment(log, len(log.ts_ns) - 1)
        fixed = {"start": 0, "end": len(log.ts_ns) - 1, "peak": int(log.allocated_bytes.argmax())}
        if self.when.value in fixed:
            return Moment(log, fixed[self.when.value])
        at_ns = self._linked_ns(log.span)
        if log.device.axis != "time" or not log.span.start_ns <= at_ns <= log.span.end_ns:
            raise UsageError(
                f"the {_MOMENTS[self.when.value]}, {units.duration(at_ns)}, lies outside the log "
                f"of {log.device.label}",
                remedy="Choose its start, its end or its peak",
            )
        return Moment(log, int(log.states_at(at_ns)))

    def _linked_ns(self, span: TimeWindow) -> int:
        if self.when.value == "moment":
            if self._link.moment_ns is None:
                raise NotAnswerableError(
                    "no moment is pointed at yet", remedy="Point at one in a view of time"
                )
            return int(self._link.moment_ns)
        window = self._link.window or self._sessions[0].window
        shown = window.intersect(span)
        window = shown if shown.dur_ns else window
        return window.start_ns if self.when.value == "window start" else window.end_ns


_NAMES = ("first", "second")


def _same(one: MemoryDevice, other: MemoryDevice) -> bool:
    """Whether both are the same device's memory, seen by the same kind of source."""
    mine = (one.kind, one.device_type, one.device, one.rank)
    return mine == (other.kind, other.device_type, other.device, other.rank)
