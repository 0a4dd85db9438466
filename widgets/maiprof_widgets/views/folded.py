"""A view that is made when someone opens it."""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets


class FoldedView(ipywidgets.VBox):
    """A button with a title; what it holds appears beneath it.

    Parameters
    ----------
    title : str
        What is shown.
    *make : callable
        Each makes a view at the first opening: a hidden plot could not learn its width.
    opened : bool
        Open from the start.
    """

    def __init__(
        self,
        title: str,
        *make: Callable[[], ipywidgets.Widget],
        opened: bool = False,
    ) -> None:
        self._title = title
        self._makers = make
        self._made: list[ipywidgets.Widget] = []
        self.button = ipywidgets.ToggleButton(value=opened, layout={"width": "auto"})
        super().__init__([self.button])
        self.add_class("maiprof-folded")
        self.button.observe(lambda _change: self._show(), "value")
        self._show()

    def _show(self) -> None:
        opened = self.button.value
        sign = "\N{BLACK DOWN-POINTING SMALL TRIANGLE}"
        closed_sign = "\N{BLACK RIGHT-POINTING SMALL TRIANGLE}"
        self.button.description = f"{sign if opened else closed_sign} {self._title}"
        if opened and not self._made:
            self._made = [make() for make in self._makers]
            self.children = [self.button, *self._made]
        for view in self._made:  # hidden, not taken off the page: plotly fails on updates there
            view.layout.display = None if opened else "none"
