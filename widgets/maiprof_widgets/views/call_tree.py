"""Following the tree down: the callees and callers of what is chosen, each a step away."""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets
import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis.call_tree import (
    callees_among,
    callers_among,
    heaviest_path_among,
    on_path,
)
from maiprof_nb.timebase import TimeWindow
from maiprof_widgets import escaping

MOST_ROWS = 12
_MOST_NAME = 70
_NOBODY = "nothing that was recorded"


class CallTree(ipywidgets.VBox):
    """Callees and callers of the calls at the end of a path; a click goes there.

    Parameters
    ----------
    go : callable
        Called with the path (names, outermost first) that was clicked.

    Attributes
    ----------
    path : tuple of str
        What is shown; empty = nothing.
    callees, callers : DataFrame
        As `maiprof_nb.analysis.call_tree` says them.
    """

    def __init__(self, go: Callable[[tuple[str, ...]], None]) -> None:
        super().__init__()
        self._go = go
        self.add_class("maiprof-call-tree")
        self.clear()

    def clear(self) -> None:
        """Show nothing."""
        self.path: tuple[str, ...] = ()
        self.callees = self.callers = pd.DataFrame()
        self.children = ()

    def show(self, calls: pd.DataFrame, path: tuple[str, ...], window: TimeWindow | None) -> None:
        """Show what the calls at the end of a path call, and what calls the first of it."""
        chosen = on_path(calls, path, window=window)
        if not chosen.any():
            self.clear()
            return
        first = chosen if len(path) == 1 else on_path(calls, path[:1], window=window)
        self.path = path
        self.callees = callees_among(calls, chosen)
        self.callers = callers_among(calls, first)
        deepest = tuple(heaviest_path_among(calls, path, chosen))
        total = int(calls.loc[chosen, "dur_ns"].sum())
        own = int(calls.loc[chosen, "self_ns"].sum())
        self.children = (
            self._breadcrumb(deepest),
            ipywidgets.HTML(_split(path, total, own, int(chosen.sum()), arrived=deepest == path)),
            *self._rows("It calls", self.callees, lambda name: (*path, name)),
            *self._rows(f"{_short(path[0])} is called by", self.callers, lambda name: (name,)),
        )

    def _breadcrumb(self, deepest: tuple[str, ...]) -> ipywidgets.Widget:
        steps: list[ipywidgets.Widget] = []
        for depth, name in enumerate(self.path, start=1):
            steps += [ipywidgets.Label("\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}")]
            steps += [self._step(name, self.path[:depth], here=depth == len(self.path))]
        follow = self._step("Follow the time down", deepest, here=deepest == self.path)
        follow.tooltip = "Always to the callee with the most time, until the own time is the most"
        follow.icon = "arrow-down"
        return ipywidgets.HBox(
            [*steps[1:], follow],
            layout=ipywidgets.Layout(flex_flow="row wrap", align_items="center"),
        )

    def _step(self, name: str, path: tuple[str, ...], *, here: bool = False) -> ipywidgets.Button:
        button = ipywidgets.Button(
            description=_plain(name),
            tooltip=escaping.visible(name),
            disabled=here,
            layout=ipywidgets.Layout(width="auto", max_width="100%"),
        )
        button.on_click(lambda _button: self._go(path))
        return button

    def _rows(
        self, title: str, found: pd.DataFrame, path_to: Callable[[str], tuple[str, ...]]
    ) -> tuple[ipywidgets.Widget, ...]:
        if found.empty:
            return ()
        heads = [title, "Calls", "Total", "Self", "Share"]
        cells: list[ipywidgets.Widget] = [ipywidgets.HTML(f"<b>{one}</b>") for one in heads]
        for row in found.head(MOST_ROWS).itertuples():
            known = isinstance(row.name, str)
            cells += [
                self._step(row.name, path_to(row.name)) if known else ipywidgets.HTML(_NOBODY),
                ipywidgets.HTML(units.count(row.calls)),
                ipywidgets.HTML(units.duration(row.total_ns)),
                ipywidgets.HTML(units.duration(row.self_ns)),
                ipywidgets.HTML(f"{100 * row.share:.1f} %"),
            ]
        grid = ipywidgets.GridBox(
            cells,
            layout=ipywidgets.Layout(
                grid_template_columns="minmax(0, max-content) repeat(4, max-content)",
                grid_gap="2px 20px",
                align_items="center",
            ),
        )
        left = len(found) - MOST_ROWS
        if left <= 0:
            return (grid,)
        rest = units.duration(int(found["total_ns"].iloc[MOST_ROWS:].sum()))
        return grid, ipywidgets.HTML(f"and {units.count(left)} more, {rest} together.")


def _split(path: tuple[str, ...], total: int, own: int, calls: int, *, arrived: bool) -> str:
    share = 100 * own / max(total, 1)
    below = (
        "The most time is its own: you have arrived."
        if arrived
        else "The most time is in a callee: go down."
    )
    through = f" through {_short(path[-2])}" if len(path) > 1 else ""
    return (
        f"{units.count(calls)} calls{through}: {units.duration(total)}, of which "
        f"{units.duration(own)} ({share:.1f} %) its own and {units.duration(total - own)} in what "
        f"it calls. {below}"
    )


def _plain(name: str) -> str:
    """A name for a place that takes no HTML."""
    shown = escaping.visible(name)
    if len(shown) <= _MOST_NAME:
        return shown
    keep = _MOST_NAME - 1
    dots = "\N{HORIZONTAL ELLIPSIS}"
    return dots + shown[-keep:] if "/" in shown else shown[:keep] + dots


def _short(name: str) -> str:
    return escaping.shortened(name, _MOST_NAME)
