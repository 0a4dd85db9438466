"""A line beneath a view that says what went wrong in it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import ipywidgets

from maiprof_nb.errors import MaiprofError, NotAnswerableError
from maiprof_widgets import escaping

_LOG = logging.getLogger(__name__)


def sentence_of(problem: MaiprofError) -> str:
    """The whole message as sentences for people; a path at its start stays as it is."""
    text = problem.sentence
    text = text if problem.where else text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."


class StatusLine(ipywidgets.HTML):
    """Empty while all is well."""

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Show an exception here instead of losing it in a callback."""
        try:
            yield
        except NotAnswerableError as problem:
            self.show(sentence_of(problem), missing=True)
        except MaiprofError as problem:
            self.show(sentence_of(problem))
        except Exception as problem:  # noqa: BLE001 - a view must never die silently
            _LOG.warning("a view failed", exc_info=True)
            self.show(f"This view failed ({type(problem).__name__}: {problem}). The others go on.")
        else:
            self.value = ""

    def show(self, sentence: str, *, missing: bool = False) -> None:
        """Say one sentence: an error, or what was not recorded."""
        kind, role = ("missing", "note") if missing else ("status", "alert")
        self.value = f'<div class="maiprof-{kind}" role="{role}">{escaping.text(sentence)}</div>'
