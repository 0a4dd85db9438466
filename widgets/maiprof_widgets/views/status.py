"""A line beneath a view that says what went wrong in it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import ipywidgets

from maiprof_nb.errors import MaiprofError
from maiprof_widgets import escaping

_LOG = logging.getLogger(__name__)


class StatusLine(ipywidgets.HTML):
    """Empty while all is well."""

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Show an exception here instead of losing it in a callback."""
        try:
            yield
        except MaiprofError as problem:
            self.show(problem.sentence)
        except Exception as problem:  # noqa: BLE001 - a view must never die silently
            _LOG.warning("a view failed", exc_info=True)
            self.show(f"This view failed ({type(problem).__name__}: {problem}). The others go on.")
        else:
            self.value = ""

    def show(self, sentence: str) -> None:
        """Say one sentence."""
        self.value = f'<div class="maiprof-status" role="alert">{escaping.text(sentence)}</div>'
