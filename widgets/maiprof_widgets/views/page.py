"""The page a dashboard stands on: its style sheet, and whether it is dark."""

from __future__ import annotations

from typing import Any

import anywidget
import traitlets

from maiprof_nb import units
from maiprof_nb.session import Session
from maiprof_widgets.link import LinkState
from maiprof_widgets.views._static import module, styles


class PageView(anywidget.AnyWidget):
    """Brings the shared styles, and tells ``link.dark`` what theme the page has.

    Shows which part of the session is on screen, and a button to go back to all of it; and the
    moment pointed at, if any, with a button to take its mark away.
    """

    _esm = module("page.js")
    _css = styles("dashboard.css")

    dark = traitlets.Bool(default_value=False).tag(sync=True)
    window = traitlets.Unicode("").tag(sync=True)
    zoomed = traitlets.Bool(default_value=False).tag(sync=True)
    moment = traitlets.Unicode("").tag(sync=True)

    def __init__(self, session: Session, link: LinkState) -> None:
        self.session, self.link = session, link
        super().__init__(
            window=self._words(),
            zoomed=link.window is not None,
            moment=self._marked(),
            dark=link.dark,
        )
        traitlets.link((self, "dark"), (link, "dark"))
        link.observe(self._on_window, "window")
        link.observe(self._on_moment, "moment_ns")
        self.on_msg(self._on_message)

    def _on_window(self, change: Any) -> None:
        self.window = self._words()
        self.zoomed = change["new"] is not None

    def _on_moment(self, _change: Any) -> None:
        self.moment = self._marked()

    def _marked(self) -> str:
        at = self.link.moment_ns
        if at is None:
            return ""
        known = self.session.span
        inside = known.start_ns <= at <= known.end_ns  # a log without times counts events
        return f"Marked: {units.duration(at)}." if inside else "A moment is marked."

    def _words(self) -> str:
        window = self.link.window
        if window is None:
            if not self.session.span.dur_ns:
                return "Shown: one moment; nothing in it has a length of time."
            whole = units.duration(self.session.span.dur_ns)
            return f"Shown: the whole recording, {whole}. Drag in a view to zoom."
        return (
            f"Shown: {units.duration(window.dur_ns)}, from {units.duration(window.start_ns)} "
            f"to {units.duration(window.end_ns)}."
        )

    def _on_message(self, _widget: Any, content: Any, _buffers: Any) -> None:
        if content == "whole":
            self.link.window = None
        elif content == "unmark":
            self.link.moment_ns = None
