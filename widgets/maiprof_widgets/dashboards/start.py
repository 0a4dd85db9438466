"""The start page: choose a recording, look at it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets

from maiprof_nb.errors import UsageError
from maiprof_nb.session import Session
from maiprof_widgets.dashboards import opening
from maiprof_widgets.dashboards.overview import Overview
from maiprof_widgets.views.status import StatusLine
from maiprof_widgets.views.upload import UploadView


class StartPage(ipywidgets.VBox):
    """Chooser on top, the dashboard of what was chosen beneath.

    Parameters
    ----------
    path : str, optional
        What to open first; what this server was started on by default.
    view : callable, optional
        Session -> widget shown beneath; `Overview` by default.

    Attributes
    ----------
    session : Session
        What is open.

    Raises
    ------
    UsageError
        By `session`, while nothing is open.
    """

    def __init__(
        self, path: str | None = None, *, view: Callable[[Session], ipywidgets.Widget] = Overview
    ) -> None:
        self._session: Session | None = None
        self._view = view
        self._telling = False
        self._samples = ipywidgets.Dropdown(
            options=[("choose a sample ...", "")]
            + [(words, name) for name, words in opening.SAMPLES.items()],
            layout={"width": "460px"},
        )
        self._path = ipywidgets.Text(
            placeholder="file, folder or URL, e.g. runs/42 or s3://bucket/run",
            layout={"width": "460px"},
            continuous_update=False,
        )
        self._open = ipywidgets.Button(description="Open", button_style="primary")
        self._upload = UploadView()
        opening.upload_areas.append(self._upload.area)
        self.status = StatusLine()
        self._place = ipywidgets.VBox(layout={"overflow": "visible"})
        chooser = ipywidgets.Tab(
            [self._samples, ipywidgets.HBox([self._path, self._open]), self._upload],
            titles=("Sample", "Path or URL", "Upload"),
        )
        super().__init__([chooser, self.status, self._place])
        self.add_class("maiprof-start")
        self._samples.observe(self._on_sample, "value")
        self._open.on_click(lambda _button: self.open_recording(self._path.value))
        self._upload.observe(lambda change: self.open_recording(change["new"]), "folder")
        first = path or opening.chosen_path()
        self._path.value = first
        self.open_recording(first)

    @property
    def session(self) -> Session:
        """What is open."""
        if self._session is None:
            raise UsageError("nothing is open", remedy="Choose a recording on the start page")
        return self._session

    def _on_sample(self, change: Any) -> None:
        if change["new"] and not self._telling:
            self.open_recording(opening.sample_path(change["new"]))

    def _tell(self, path: str) -> None:
        """Both choosers name what is open."""
        self._path.value = path
        self._telling = True
        try:
            self._samples.value = opening.sample_name(path)
        finally:
            self._telling = False

    def open_recording(self, path: str) -> None:
        """Load and show a recording; say why where that fails, and keep what is shown."""
        self._open.disabled = True
        self.status.value = "<i>Reading ...</i>"
        try:
            with self.status.guard():
                session = opening.open_path(path.strip())
                self._place.children = (self._view(session),)
                self._session = session
                opening.choose(path.strip())
                self._tell(path.strip())
        finally:
            self._open.disabled = False
        if self._session is None and not self._place.children:
            self._place.children = (
                ipywidgets.HTML(
                    '<div class="maiprof-empty">Nothing is open. Choose a sample, give the path '
                    "of a trace, snapshot or metrics file or of a folder of them, or upload "
                    "files.</div>"
                ),
            )
