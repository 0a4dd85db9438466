"""How far a load is, beneath the cell that waits for it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from IPython import get_ipython
from IPython.display import display

from maiprof_nb.loading.progress import Report
from maiprof_widgets.views.progress import ProgressView

PATIENCE_S = 1.0
_EVERY_S = 0.25


@contextmanager
def shown_progress() -> Iterator[Report | None]:
    """A listener for `maiprof_nb.load` that shows a bar if the load takes over a second.

    None outside of a notebook.
    """
    if get_ipython() is None:
        yield None
        return
    begun = told = time.monotonic()
    view: ProgressView | None = None

    def report(share: float) -> None:
        nonlocal view, told
        now = time.monotonic()
        elapsed = now - begun
        if elapsed < PATIENCE_S or now - told < _EVERY_S or not share:
            return
        told = now
        if view is None:
            view = ProgressView()
            display(view)  # type: ignore[no-untyped-call]
        view.show("Reading", share, elapsed, elapsed * (1 - share) / share)

    try:
        yield report
    finally:
        if view is not None:
            view.hide()
