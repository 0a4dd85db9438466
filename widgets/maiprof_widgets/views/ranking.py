"""What was recorded, ranked by cost: sort, search, choose, follow the tree down."""

from __future__ import annotations

from typing import Any

import ipywidgets
import pandas as pd

from maiprof_nb import units
from maiprof_nb.session import Session
from maiprof_widgets import escaping
from maiprof_widgets.link import LinkState, Selection
from maiprof_widgets.views._makers import as_call
from maiprof_widgets.views._ranked import RANKED, Ranked, recorded
from maiprof_widgets.views.call_tree import CallTree
from maiprof_widgets.views.delayed import Delayed
from maiprof_widgets.views.status import StatusLine
from maiprof_widgets.views.table import HeaderSort, column_sides, paged_table

MAX_ROWS = 5000
_QUIET_S = 0.25


class RankingView(ipywidgets.VBox):
    """Reads ``link.window``; reads and sets ``link.selection``.

    A selected allocation shows as the operator that made it.

    Parameters
    ----------
    session : Session
        What to rank.
    link : LinkState
        Shared with the other views.

    Attributes
    ----------
    what, by : ToggleButtons
        What is ranked (``operators``, ``kernels``, ``launches``, ``python``; only what was
        recorded), and what makes a row.
    ranking : DataFrame
        What the table shows.
    tree : CallTree
        Callees and callers of the chosen row.
    """

    def __init__(self, session: Session, link: LinkState) -> None:
        self.session, self.link = session, link
        self.status = StatusLine()
        self.caption = ipywidgets.HTML()
        self.chosen = ipywidgets.HTML()
        self.tree = CallTree(self._go)
        self._kinds: dict[str, Ranked] = {}
        with self.status.guard():
            self._kinds = recorded(session)
        self.what = _toggle([(kind.label, key) for key, kind in self._kinds.items()])
        self.by = _toggle([])
        self._updating = False
        self.ranking = pd.DataFrame()
        with self.status.guard():
            self._offer_groupings()
            self.ranking = self._ranked()
        shown = self._shown()
        self.table = paged_table(
            shown, text_columns=_text_columns(shown), select="single", selected_rows=[]
        )
        super().__init__(self._parts())
        if self._kinds:
            self._say()
        else:
            self.status.show(
                "No operators were recorded, so there is nothing to rank. Load a trace recorded "
                "with torch.profiler.profile and ProfilerActivity.CPU.",
                missing=True,
            )
        self.add_class("maiprof-ranking")
        self._later = Delayed(self.refresh, _QUIET_S)
        self.table.observe(self._on_row, "selected_rows")
        self.what.observe(self._on_what, "value")
        self.by.observe(self._on_by, "value")
        link.observe(lambda _change: self._later.request(), "window")
        link.observe(self._on_selection, "selection")

    @property
    def _kind(self) -> Ranked:
        return RANKED[self.what.value or "operators"]

    def refresh(self) -> None:
        """Rank what overlaps the current window."""
        if not self._kinds:
            return
        with self.status.guard():
            self.ranking = self._ranked()
            shown = self._shown()
            self._updating = True
            try:
                self.table.update(
                    shown,
                    selected_rows=self._rows_of(as_call(self.session, self.link.selection)),
                    order=[],
                    columnDefs=column_sides(_text_columns(shown), shown.shape[1]),
                )
            finally:
                self._updating = False
            self._describe_chosen()
        self._say()

    def _parts(self) -> list[ipywidgets.Widget]:
        if not self._kinds:
            return [self.status]
        what = [self.what] if len(self._kinds) > 1 else []
        beneath = [self.chosen, self.tree, self.status]
        return [self.caption, *what, self.by, self.table, HeaderSort(), *beneath]

    def _offer_groupings(self) -> None:
        options = self._kind.options(self.session) if self._kinds else []
        if list(self.by.options) != options:
            self.by.options = options  # chooses none
            self.by.value = options[0][1]
        self.by.layout.display = None if len(options) > 1 else "none"

    def _ranked(self) -> pd.DataFrame:
        if not self._kinds:
            return pd.DataFrame()
        return self._kind.rank(self.session, self.link.window, self.by.value)

    def _shown(self) -> pd.DataFrame:
        """The columns people read."""
        if self.ranking.empty:
            return pd.DataFrame({"Name": []})
        return self._kind.columns(self.ranking.head(MAX_ROWS))

    def _say(self) -> None:
        count, shown = len(self.ranking), min(len(self.ranking), MAX_ROWS)
        part = "" if shown == count else f", the first {units.count(shown)} shown"
        where = "in the window shown" if self.link.window is not None else "in the whole recording"
        self.caption.value = (
            f"<b>{self._kind.title}</b> {where}: {units.count(count)} rows{part}. "
            f"{self._kind.advice}"
        )
        if self.ranking.empty:
            nothing = "No operator" if self._kind is RANKED["operators"] else "Nothing of this kind"
            self.status.show(f"{nothing} ran in this window. Zoom out to see some.", missing=True)

    def _on_what(self, _change: Any) -> None:
        with self.status.guard():
            self._updating = True
            try:
                self._offer_groupings()
            finally:
                self._updating = False
            self.tree.clear()
        self.refresh()

    def _on_by(self, _change: Any) -> None:
        if not self._updating:
            self.refresh()

    def _on_row(self, change: Any) -> None:
        if self._updating:
            return
        with self.status.guard():
            rows, table = change["new"], self._kind.table
            if not rows:
                if self.link.selection is not None and self.link.selection.table == table:
                    self.link.selection = None
                return
            name = self.ranking["name"].iloc[rows[0]]
            self.link.selection = Selection(table, name=str(name))
            self._describe_chosen()  # another row of the same name is no change of the selection

    def _on_selection(self, _change: Any) -> None:
        with self.status.guard():
            rows = self._describe_chosen()
            if rows != list(self.table.selected_rows):
                self._updating = True
                try:
                    self.table.selected_rows = rows
                finally:
                    self._updating = False

    def _go(self, path: tuple[str, ...]) -> None:
        """Choose the end of a path, come to from the rows above it."""
        with self.status.guard():
            self.tree.path = path
            before = self.link.selection
            self.link.selection = Selection(self._kind.table, name=path[-1])
            if self.link.selection == before:
                self._describe_chosen()

    def _describe_chosen(self) -> list[int]:
        """Say the figures of the chosen row and what it calls; return where it is."""
        selection = as_call(self.session, self.link.selection)
        rows = self._rows_of(selection)
        self.chosen.value = self._in_words(rows[0]) if rows else ""
        calls = self._kind.calls
        if calls is None or selection is None or selection.table != self._kind.table:
            self.tree.clear()
        elif selection.name is not None:
            held = self.tree.path
            path = held if held[-1:] == (selection.name,) else (selection.name,)
            self.tree.show(calls(self.session), path, self.link.window)
        return rows

    def _rows_of(self, selection: Selection | None) -> list[int]:
        if selection is None or selection.table != self._kind.table or self.ranking.empty:
            return []
        matches = (self.ranking["name"] == selection.name).to_numpy().nonzero()[0]
        held = [row for row in self.table.selected_rows if row in matches]
        first = [int(row) for row in matches[:1] if row < MAX_ROWS]
        return held or first

    def _in_words(self, row: int) -> str:
        one = self.ranking.iloc[row]
        chosen = self.link.selection
        made = chosen is not None and chosen.table == "allocations"
        only = " Now only the one that made the chosen allocation is." if made else ""
        return (
            f'<div class="maiprof-chosen"><b>{escaping.shortened(one["name"], 120)}</b>: '
            f"{self._kind.words(one)}{only}</div>"
        )


def _toggle(options: list[tuple[str, str]]) -> ipywidgets.ToggleButtons:
    return ipywidgets.ToggleButtons(options=options, description="", style={"button_width": "auto"})


def _text_columns(shown: pd.DataFrame) -> int:
    """How many columns from the left hold text."""
    numeric = [pd.api.types.is_numeric_dtype(dtype) for dtype in shown.dtypes]
    return numeric.index(True) if True in numeric else len(numeric)
