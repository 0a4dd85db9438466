"""Call paths as a tree of boxes, of the gaps or of the time shown, linked to the other views."""

from __future__ import annotations

import logging
from typing import Any

import anywidget
import pandas as pd
import traitlets

from maiprof_nb import units
from maiprof_nb.analysis.icicle import Icicle, icicle
from maiprof_nb.analysis.python_in_gaps import frames_from_stacks
from maiprof_nb.errors import MaiprofError, NotAnswerableError
from maiprof_nb.session import Session
from maiprof_widgets import escaping
from maiprof_widgets.link import LinkState, Selection
from maiprof_widgets.views._static import module, styles
from maiprof_widgets.views.delayed import Delayed
from maiprof_widgets.views.gap_functions import FROM_STACKS
from maiprof_widgets.views.status import sentence_of

_LOG = logging.getLogger(__name__)
_QUIET_S = 0.15  # a drag in another view asks many times a second
_MAX_NAME = 400
_MAX_FINER = 1500  # call paths of what is looked into
_TABLES = {
    "python": "python_calls",
    "operator": "operators",
    "range": "annotations",
    "launch": "launches",
    "forward": "python_calls",
}


class IcicleView(anywidget.AnyWidget):
    """Python frames, operators and runtime calls merged by call path; callers above callees.

    Parameters
    ----------
    session : Session
        What was recorded.
    link : LinkState, optional
        What is looked at, shared with other views; of its own by default.

    Attributes
    ----------
    session, link
        As given.
    gaps_only : bool
        Only the time in which every GPU is idle; else all of the time shown.
    theme : str
        ``auto`` (that of the page), ``light`` or ``dark``.
    status : str
        What went wrong last, as a sentence; empty when nothing did.

    Notes
    -----
    Follows ``link.window``; sets ``link.selection`` by a click. A box that is looked into is
    asked for again, down to finer call paths; what stays too small is one box that says so.
    """

    _esm = module("icicle.js")
    _css = styles("views.css")

    picture = traitlets.Dict().tag(sync=True)
    finer = traitlets.Dict().tag(sync=True)
    gaps_only = traitlets.Bool(default_value=True).tag(sync=True)
    selected = traitlets.Dict().tag(sync=True)
    theme = traitlets.Enum(("auto", "light", "dark"), default_value="auto").tag(sync=True)
    status = traitlets.Unicode("").tag(sync=True)

    def __init__(self, session: Session, link: LinkState | None = None, **traits: Any) -> None:
        self.session, self.link = session, link or LinkState()
        self._sent: dict[int, tuple[str, str]] = {}  # kind and name of each path
        super().__init__(**traits)
        self._show()
        self._show_selection()
        later = Delayed(self._show, _QUIET_S)
        self.link.observe(lambda _change: later.request(), "window")
        self.link.observe(lambda _change: self._show_selection(), "selection")
        self.observe(lambda _change: self._show(), "gaps_only")
        self.on_msg(self._received)

    def found(self) -> Icicle:
        """What is shown now.

        Raises
        ------
        NotAnswerableError
            If gaps are asked for and no device work was recorded.
        """
        return icicle(self.session, window=self.link.window, gaps_only=self.gaps_only)

    def _show(self) -> None:
        self.status, empty, self._sent = "", "", {}
        try:
            found = self.found()
        except NotAnswerableError as problem:
            found, empty = None, sentence_of(problem)
        except MaiprofError as problem:
            found, self.status = None, sentence_of(problem)
        except Exception as problem:  # noqa: BLE001 - a view must never die silently
            _LOG.warning("the icicle view failed", exc_info=True)
            found, self.status = None, f"This view failed ({type(problem).__name__}: {problem})."
        if found is None or found.nodes.empty:
            self.picture = {"title": self._title(), "empty": empty or self._nothing(found)}
            return
        self.picture = {
            "title": self._title(),
            "facts": _facts(found) + self._bounds(),
            **self._arrays(found.nodes),
        }

    def _title(self) -> str:
        if self.gaps_only:
            return "What the host did while every GPU was idle"
        return "What the host did in the time shown"

    def _bounds(self) -> str:
        return f" {FROM_STACKS}" if frames_from_stacks(self.session) else ""

    def _nothing(self, found: Icicle | None) -> str:
        if found is not None and self.gaps_only and not found.within_ns:
            return "There is no moment in the time shown in which every GPU is idle."
        return "No host event was recorded in this time."

    def _show_selection(self) -> None:
        chosen = self.link.selection
        self.selected = (
            {"table": chosen.table, "name": escaping.visible(chosen.name)[:_MAX_NAME]}
            if chosen is not None and chosen.name is not None
            else {}
        )

    def _received(self, _widget: Any, content: Any, _buffers: Any) -> None:
        """A click; what the browser calls a node is the number of its call path."""
        if not isinstance(content, dict) or not isinstance(path := content.get("node"), int):
            return
        if content.get("kind") == "choose":
            kind, name = self._sent.get(path, ("", ""))
            table = _TABLES.get(kind)
            self.link.selection = Selection(table, name=name) if table else None
        elif content.get("kind") == "look" and path in self._sent:
            self._look(path)

    def _look(self, path: int) -> None:
        """Send the finer paths under one that was sent."""
        try:
            found = icicle(
                self.session,
                window=self.link.window,
                gaps_only=self.gaps_only,
                under=path,
                max_nodes=_MAX_FINER,
            )
        except Exception as problem:  # noqa: BLE001 - a view must never die silently
            _LOG.warning("the icicle view failed", exc_info=True)
            self.status = f"This view failed ({type(problem).__name__}: {problem})."
            return
        if len(found.nodes):
            answer = self.finer.get("answer", 0) + 1  # else the same nodes are not sent again
            self.finer = {"answer": answer, "under": path, "nodes": self._arrays(found.nodes)}

    def _arrays(self, nodes: pd.DataFrame) -> dict[str, Any]:
        """Columns for the browser; each name once."""
        codes, texts = pd.factorize(nodes["name"])
        kinds = nodes["kind"].tolist()
        paths = nodes["path"].tolist()
        self._sent |= dict(zip(paths, zip(kinds, nodes["name"], strict=True), strict=True))
        return {
            "names": [escaping.visible(text)[:_MAX_NAME] for text in texts],
            "path": paths,
            "name": codes.tolist(),
            "parent": nodes["parent"].tolist(),
            "kind": kinds,
            "own": nodes["own"].tolist(),
            "total": nodes["total_ns"].tolist(),
            "self": nodes["self_ns"].tolist(),
            "pruned": nodes["pruned_ns"].tolist(),
            "small": nodes["pruned"].tolist(),
            "threads": nodes["threads"].tolist(),
            "calls": nodes["calls"].tolist(),
        }


def _facts(found: Icicle) -> str:
    threads = int(found.nodes.loc[found.nodes["parent"] < 0, "threads"].sum())
    said = (
        f"{units.duration(found.within_ns)} looked at; {units.duration(found.total_ns)} of "
        f"recorded host time in it, summed over {threads} thread{'s' if threads != 1 else ''}."
    )
    if found.dropped:
        said += (
            f" {units.count(found.dropped)} call paths are too small to draw: look into a box to "
            "see those under it."
        )
    return said
