"""A table whose rows choose what they name, for every view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ipywidgets
import pandas as pd

from maiprof_widgets.link import LinkState, Selection
from maiprof_widgets.views.status import StatusLine
from maiprof_widgets.views.table import HeaderSort, paged_table


class ChoiceTable(ipywidgets.VBox):
    """Reads and sets ``link.selection``.

    Parameters
    ----------
    link : LinkState
        Shared with the other views.
    shown : DataFrame
        What people read, a few hundred rows at most.
    names : sequence of str
        What each row is about, as the table says it.
    table : str
        What `Selection.table` says of a row.
    text_columns : int
        How many columns, from the left, hold text.
    """

    def __init__(
        self,
        link: LinkState,
        shown: pd.DataFrame,
        names: Sequence[str],
        *,
        table: str = "operators",
        text_columns: int = 1,
    ) -> None:
        self.link, self.names = link, list(names)
        self._table, self._following = table, False
        self.status = StatusLine()
        self.rows = paged_table(
            shown, text_columns=text_columns, select="single", selected_rows=self._chosen([])
        )
        self.rows.observe(self._on_row, "selected_rows")
        link.observe(lambda _change: self._follow(), "selection")
        super().__init__([self.rows, HeaderSort(), self.status])
        self.add_class("maiprof-choice-table")

    def show(self, shown: pd.DataFrame, names: Sequence[str]) -> None:
        """Show other rows."""
        self.names = list(names)
        self._set(lambda: self.rows.update(shown, selected_rows=self._chosen([])))

    def _chosen(self, held: Sequence[int]) -> list[int]:
        """The row of what is selected; of several that name it, the one held, else the first."""
        selection = self.link.selection
        if selection is None or selection.table != self._table:
            return []
        matching = [row for row, name in enumerate(self.names) if name == selection.name]
        return [row for row in held if row in matching] or matching[:1]

    def _follow(self) -> None:
        with self.status.guard():
            rows = self._chosen(self.rows.selected_rows)
            if rows != list(self.rows.selected_rows):
                self._set(lambda: setattr(self.rows, "selected_rows", rows))

    def _set(self, change: Any) -> None:
        self._following = True
        try:
            change()
        finally:
            self._following = False

    def _on_row(self, change: Any) -> None:
        if self._following:
            return
        with self.status.guard():
            rows, selection = change["new"], self.link.selection
            if rows:
                self.link.selection = Selection(self._table, name=self.names[rows[0]])
            elif selection is not None and selection.table == self._table:
                self.link.selection = None
