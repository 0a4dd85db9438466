"""Which stacks made the allocations of the time shown, as a table beneath the memory view."""

from __future__ import annotations

from typing import Any

import ipywidgets
import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis.allocations_during import allocations_in, made_by_stack
from maiprof_widgets import escaping
from maiprof_widgets.link import Selection
from maiprof_widgets.views import _memory_words as words
from maiprof_widgets.views.delayed import Delayed
from maiprof_widgets.views.memory import MemoryView
from maiprof_widgets.views.status import StatusLine
from maiprof_widgets.views.table import HeaderSort, paged_table

MAX_ROWS = 2000
_QUIET_S = 0.25
_TOLD_APART = 200
_MIB = 2**20


class AllocationsMade(ipywidgets.VBox):
    """Reads ``link.window``; a row chosen here is a ``link.selection`` of table ``stacks``.

    Parameters
    ----------
    memory : MemoryView
        The view whose device and time it follows.

    Attributes
    ----------
    made : DataFrame
        Rows of `made_by_stack`.
    """

    def __init__(self, memory: MemoryView) -> None:
        self.memory = memory
        self.status = StatusLine()
        self.caption = ipywidgets.HTML()
        self.made = pd.DataFrame()
        self._updating = False
        with self.status.guard():
            self._count()
        self.table = paged_table(self._columns(), select="single", selected_rows=[])
        super().__init__([self.caption, self.table, HeaderSort(), self.status])
        self.add_class("maiprof-ranking")
        self.add_class("maiprof-made")
        self._later = Delayed(self.refresh, _QUIET_S)
        for name in ("window_us", "about"):
            memory.observe(lambda _change: self._later.request(), name)
        self.table.observe(self._on_row, "selected_rows")

    def refresh(self) -> None:
        """Count what was made in the time shown now."""
        with self.status.guard():
            self._count()
            self._updating = True
            try:
                self.table.update(self._columns(), selected_rows=[], order=[])
            finally:
                self._updating = False

    def _count(self) -> None:
        if self.memory.device is None:
            self.made = pd.DataFrame()
            return
        log = self.memory.log
        self.made = made_by_stack(log, allocations_in(log, self.memory.time_window))
        count, shown = len(self.made), min(len(self.made), MAX_ROWS)
        part = "" if shown == count else f", the first {units.count(shown)} shown"
        self.caption.value = (
            f"<b>Allocations made in the time shown</b>, by stack: {units.count(count)}{part}. "
            "Kept = still live at the end of that time. Choose a row to see its bands above."
        )

    def _columns(self) -> pd.DataFrame:
        top = self.made.head(MAX_ROWS)
        if top.empty:
            return pd.DataFrame({"Stack": []})
        return pd.DataFrame(
            {
                "Stack": self._names(top),
                "Allocations": top["allocations"],
                "Made (MiB)": (top["size_bytes"] / _MIB).round(3),
                "Largest (MiB)": (top["largest_bytes"] / _MIB).round(3),
                "Kept": top["kept"],
                "Kept (MiB)": (top["kept_bytes"] / _MIB).round(3),
            }
        )

    def _names(self, top: pd.DataFrame) -> list[str]:
        """Stacks by their own line; the first also by the frames that tell them apart."""
        stacks = top["stack"].fillna(-1).astype("int64").tolist()
        told = words.names(self.memory.log, stacks[:_TOLD_APART])
        rest = [words.short(str(label)) for label in top["label"][_TOLD_APART:]]
        return [escaping.visible(name) for name in (*told, *rest)]

    def _on_row(self, change: Any) -> None:
        device = self.memory.device
        if self._updating or device is None:
            return
        with self.status.guard():
            rows = change["new"]
            stack = self.made["stack"].iloc[rows[0]] if rows else pd.NA
            chosen = None
            if not pd.isna(stack):
                chosen = Selection("stacks", row=int(stack), recording=device.recording)
            self.memory.link.selection = chosen
