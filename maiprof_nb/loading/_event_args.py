"""The full args of one event, read again from the file when somebody asks."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from maiprof_nb.errors import LoadError
from maiprof_nb.loading import _chrome_json, sources
from maiprof_nb.loading._chrome_json import Part


@dataclass(frozen=True)
class EventArguments:
    """``arguments(event)`` -> everything the file says in the args of that event.

    Parameters
    ----------
    source : str
        The trace.
    firsts : tuple of int
        Number of the first event of each part it is read in.

    Notes
    -----
    Keeping the args of millions of events would double a session, and few are ever looked at.
    """

    source: str
    firsts: tuple[int, ...]

    def __call__(self, event: int) -> dict[str, Any]:
        """Args of one event; empty where it has none.

        Raises
        ------
        LoadError
            If the file is gone or no longer the one that was loaded.
        """
        wanted = bisect_right(self.firsts, event) - 1
        data, _ = sources.content(self.source)
        try:
            for number, part in enumerate(_parts(data)):
                if number == wanted:
                    return part.args(event - part.first)
        except IndexError:
            pass
        raise LoadError(
            f"the file has changed since it was loaded: there is no event {event}",
            where=self.source,
            remedy="Load it again",
        )


def _parts(data: bytes) -> Iterator[Part]:
    try:
        yield from _chrome_json.outline(data).parts()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        yield _chrome_json.repaired(data, problem)[2]
