"""The start page: choose a recording, look at it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import ipywidgets

from maiprof_nb.errors import UsageError
from maiprof_nb.session import Session
from maiprof_widgets.dashboards import opening
from maiprof_widgets.dashboards.background import BackgroundLoad
from maiprof_widgets.dashboards.cell_progress import PATIENCE_S
from maiprof_widgets.dashboards.overview import Overview
from maiprof_widgets.views.progress import ProgressView
from maiprof_widgets.views.status import StatusLine
from maiprof_widgets.views.upload import UploadView

_TICK_S = 0.2
_NOTHING = (
    '<div class="maiprof-empty">Nothing is open. Choose a sample, give the path of a trace, '
    "snapshot or metrics file or of a folder of them, or upload files.</div>"
)


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
        What is open, as it lies now. Waits for a load under way.

    Raises
    ------
    UsageError
        By `session`, while nothing is open.

    Notes
    -----
    In a notebook, loads run in a thread, so that the page can say how far they are and stop
    them; only the event loop changes widgets. A first load that is done within a second is
    there when the cell ends.
    """

    def __init__(
        self, path: str | None = None, *, view: Callable[[Session], ipywidgets.Widget] = Overview
    ) -> None:
        self._session: Session | None = None
        self._load: BackgroundLoad | None = None
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
        self.progress = ProgressView(self.cancel)
        self._place = ipywidgets.VBox(layout={"overflow": "visible"})
        chooser = ipywidgets.Tab(
            [self._samples, ipywidgets.HBox([self._path, self._open]), self._upload],
            titles=("Sample", "Path or URL", "Upload"),
        )
        super().__init__([chooser, self.progress, self.status, self._place])
        self.add_class("maiprof-start")
        self._samples.observe(self._on_sample, "value")
        self._open.on_click(lambda _button: self.open_recording(self._path.value))
        self._upload.observe(lambda change: self.open_recording(change["new"]), "folder")
        first = path or opening.chosen_path()
        self._path.value = first
        self.open_recording(first, wait_s=PATIENCE_S)

    @property
    def session(self) -> Session:
        """What is open."""
        while self._load is not None:
            self._load.wait(_TICK_S)
            self._look_after(self._load)
        if self._session is None:
            raise UsageError("nothing is open", remedy="Choose a recording on the start page")
        view = self._place.children[0] if self._place.children else None
        shown = getattr(view, "session", None)  # placed by hand since
        return shown if isinstance(shown, Session) else self._session

    def open_recording(self, path: str, *, wait_s: float = 0.0) -> None:
        """Load and show a recording; say why where that fails, and keep what is shown.

        Parameters
        ----------
        path : str
            A file, folder or URL.
        wait_s : float
            How long to wait for it; then, and where an event loop runs, the page shows it later.
        """
        path = path.strip()
        if self._load is not None:
            self._load.cancel()
            self._load = None
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # a script or a test: nobody could press a button
            self._show(path, lambda: opening.open_path(path))
            return
        self._open.disabled = True
        self.status.value = "<i>Reading ...</i>"
        load = BackgroundLoad(path, lambda report: opening.open_path(path, report))
        self._load = load
        load.wait(wait_s)
        self._look_after(load)
        if self._load is load:
            loop.call_later(_TICK_S, self._tick, load, loop)

    def cancel(self) -> None:
        """Stop the load under way."""
        if self._load is not None:
            self._load.cancel()
            self.progress.stopping()

    def _tick(self, load: BackgroundLoad, loop: asyncio.AbstractEventLoop) -> None:
        self._look_after(load)
        if self._load is load:
            loop.call_later(_TICK_S, self._tick, load, loop)

    def _look_after(self, load: BackgroundLoad) -> None:
        """Show how far a load is, or what it gave."""
        if self._load is not load:  # another took its place
            return
        if load.finished:
            self._load = None
            self.progress.hide()
            if load.cancelled:
                self._stopped()
            else:
                self._show(load.path, load.result)
        elif load.elapsed_s >= PATIENCE_S and not load.cancelled:
            self.status.value = ""
            self.progress.show("Reading", load.share, load.elapsed_s, load.remaining_s)

    def _show(self, path: str, result: Callable[[], Session]) -> None:
        with self.status.guard():
            session = result()
            self.status.value = "<i>Working out the views ...</i>"
            self._place.children = (self._view(session),)
            self._session = session
            opening.choose(path)
            self._tell(path)
        self._ready()

    def _stopped(self) -> None:
        self.status.show("Stopped before it was read to its end.", missing=True)
        self._ready()

    def _ready(self) -> None:
        self._open.disabled = False
        if self._session is None and not self._place.children:
            self._place.children = (ipywidgets.HTML(_NOTHING),)

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
