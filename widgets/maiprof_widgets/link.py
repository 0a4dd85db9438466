"""The one thing views share: what is looked at now."""

from __future__ import annotations

from dataclasses import dataclass

import traitlets

from maiprof_nb.timebase import TimeWindow


@dataclass(frozen=True, slots=True)
class Selection:
    """Something chosen in a view.

    Parameters
    ----------
    table : str
        The table it is a row (or a group of rows) of, e.g. ``operators``.
    name : str, optional
        All rows of that name.
    row : int, optional
        One row by its id.
    recording : int, optional
        Position in ``session.recordings`` of the recording whose row it is: row ids repeat
        between recordings. None = of any.
    """

    table: str
    name: str | None = None
    row: int | None = None
    recording: int | None = None


class LinkState(traitlets.HasTraits):
    """What is looked at: set by any view, followed by all.

    Traits change only when the value differs, so a view that hears its own change
    (or the browser's echo of it) can set it again without a loop.

    Attributes
    ----------
    window : TimeWindow or None
        Time shown, in ns of the session; None = the whole session.
    ranks : tuple of int or None
        Ranks shown; None = all.
    selection : Selection or None
        What is chosen.
    moment_ns : int or None
        The moment pointed at, in ns of the session: views of states (the allocator's segments,
        what is live) show that one, views of time mark it.
    dark : bool
        Dark ground; follows the page where it can be told.
    """

    window = traitlets.Instance(TimeWindow, allow_none=True, default_value=None)
    ranks = traitlets.Tuple(allow_none=True, default_value=None)
    selection = traitlets.Instance(Selection, allow_none=True, default_value=None)
    moment_ns = traitlets.Int(allow_none=True, default_value=None)
    dark = traitlets.Bool(default_value=False)
