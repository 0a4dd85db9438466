"""How far something is, how long it will still take, and a button that stops it."""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets

from maiprof_nb import units
from maiprof_nb.timebase import NS_PER_S


class ProgressView(ipywidgets.HBox):
    """A bar, a sentence and a button; takes no room while nothing is shown.

    Parameters
    ----------
    cancel : callable, optional
        Called when the button is pressed; without it there is none.
    """

    def __init__(self, cancel: Callable[[], None] | None = None) -> None:
        self.bar = ipywidgets.FloatProgress(
            min=0.0, max=1.0, layout={"width": "min(320px, 40%)", "flex": "0 1 auto"}
        )
        self.words = ipywidgets.HTML(layout={"flex": "0 1 auto"})
        self.button = ipywidgets.Button(description="Cancel", layout={"width": "auto"})
        if cancel is not None:
            self.button.on_click(lambda _button: cancel())
        shown = [self.bar, self.words, *([self.button] if cancel is not None else [])]
        super().__init__(shown, layout={"display": "none", "align_items": "center"})
        self.add_class("maiprof-progress")

    def show(self, what: str, share: float, elapsed_s: float, remaining_s: float | None) -> None:
        """Say where it stands; `what` is plain words."""
        self.bar.value = share
        self.words.value = progress_words(what, share, elapsed_s, remaining_s)
        self.button.disabled = False
        self.layout.display = "flex"

    def stopping(self) -> None:
        """Say that it will stop."""
        self.button.disabled = True
        self.words.value = "Stopping ..."

    def hide(self) -> None:
        """Take it away."""
        self.layout.display = "none"


def progress_words(what: str, share: float, elapsed_s: float, remaining_s: float | None) -> str:
    """One sentence: ``Reading: 40 %, about 12 s left``."""
    if remaining_s is None:
        return f"{what}: {round(elapsed_s)} s so far"
    # whole seconds: it is an estimate, and text that trembles cannot be read
    left_s = max(round(remaining_s), 1)
    left = f"{left_s} s" if left_s < 60 else units.duration(left_s * NS_PER_S)
    return f"{what}: {share * 100:.0f} %, about {left} left"
