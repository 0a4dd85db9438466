"""Each source's place on the axis of time, to change by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import ipywidgets

from maiprof_nb import units
from maiprof_nb.analysis.alignment import aligned
from maiprof_nb.errors import UsageError
from maiprof_nb.recording import Recording
from maiprof_nb.session import Session
from maiprof_nb.session_file import SUFFIX, source_name
from maiprof_nb.timebase import NS_PER_S
from maiprof_widgets import escaping
from maiprof_widgets.views._durations import typed_duration
from maiprof_widgets.views.status import StatusLine

_WIDE = {"width": "auto"}


class ClocksView(ipywidgets.VBox):
    """A row a source: move it by a typed time, estimate its place, or put it back.

    Parameters
    ----------
    session : Session
        What is open.
    show : callable
        Called with the session in which something lies elsewhere.
    save : bool
        Offer to write the places down beside the recordings; not for visitors of a server.
    """

    def __init__(
        self, session: Session, show: Callable[[Session], None], *, save: bool = True
    ) -> None:
        self.session, self._show_session = session, show
        self.status = StatusLine()
        several = len(session.recordings) > 1
        self.rows = [
            _Row(session, number, self, estimate=several and recording.kind != "snapshot")
            for number, recording in enumerate(session.recordings)
        ]
        help_text = ipywidgets.HTML(
            '<div class="maiprof-sub">Type how far a source is to move, e.g. <code>+2 h</code> or '
            "<code>-13.4 s</code> (later is +), and press Move. Estimate compares the course of "
            "the sampled utilisation with when the trace says the device was busy, and refuses "
            "where that does not single out one place.</div>"
        )
        super().__init__([help_text, *self.rows, *([self._saving()] if save else []), self.status])
        self.add_class("maiprof-clocks")

    def change(self, make: Callable[[], Session]) -> None:
        """Show another session; or say why there is none."""
        with self.status.guard():
            self._show_session(make())

    def _saving(self) -> ipywidgets.HBox:
        self.path = ipywidgets.Text(value=_beside(self.session), layout={"width": "420px"})
        button = ipywidgets.Button(description="Save session", layout=_WIDE)
        button.on_click(lambda _button: self.save())
        return ipywidgets.HBox([self.path, button])

    def save(self) -> None:
        """Write the session file, and say where it lies."""
        saved = False
        with self.status.guard():
            if not self.path.value.strip():
                raise UsageError("no place to save to was given", remedy="Give a local file")
            self.session.save(self.path.value.strip())
            saved = True
        if saved:
            self.status.value = (
                f"<div>{escaping.text(_saved_words(self.session, self.path.value))}</div>"
            )


class _Row(ipywidgets.HBox):
    """One source."""

    def __init__(self, session: Session, number: int, view: ClocksView, *, estimate: bool) -> None:
        self.session, self.number, self.view = session, number, view
        recording, placement = session.recordings[number], session.placements[number]
        name = ipywidgets.HTML(
            f"<b>{escaping.shortened(source_name(recording.source), 50)}</b> "
            f'<span class="maiprof-sub">{escaping.text(_where(session, number))}</span>',
            layout={"flex": "1 1 260px"},
        )
        self.offset = ipywidgets.Text(placeholder="+2 h, -13.4 s", layout={"width": "130px"})
        self.buttons = {
            "Move": (self._moved, f"Move {source_name(recording.source)} by the time typed"),
            **(
                {"Estimate": (self._estimated, "From when the device was busy")} if estimate else {}
            ),
            **({"By its clock": (self._by_clock, "Undo")} if placement.stated else {}),
        }
        parts = [name, self.offset]
        for words, (make, tip) in self.buttons.items():
            button = ipywidgets.Button(description=words, tooltip=tip, layout=_WIDE)
            button.on_click(lambda _button, make=make: view.change(make))
            parts.append(button)
        self.interval = None
        if _has_order_only(recording):
            known_ns = recording.meta.get("interval_ns")
            self.interval = ipywidgets.FloatText(
                value=known_ns / NS_PER_S if known_ns else 1.0,
                description="every (s)",
                layout={"width": "150px"},
            )
            button = ipywidgets.Button(description="Space", tooltip="Its rows have no times")
            button.layout = _WIDE
            button.on_click(lambda _button: view.change(self._spaced))
            parts += [self.interval, button]
        super().__init__(parts, layout={"flex_flow": "row wrap", "align_items": "center"})

    def _moved(self) -> Session:
        by_ns = typed_duration(self.offset.value)
        return self.session.placed({self.number: self._offset_ns + by_ns})

    def _estimated(self) -> Session:
        return aligned(self.session, self.number)

    def _by_clock(self) -> Session:
        return self.session.placed({self.number: None})

    def _spaced(self) -> Session:
        seconds = 0.0 if self.interval is None else float(self.interval.value)
        return self.session.placed(interval_s={self.number: seconds})

    @property
    def _offset_ns(self) -> int:
        return self.session.placements[self.number].offset_ns


def _where(session: Session, number: int) -> str:
    recording, placement = session.recordings[number], session.placements[number]
    starts = units.duration(placement.offset_ns + recording.span.start_ns)
    place = f"starts at {starts}" if placement.on_axis else "on an axis of its own"
    return f"{place}; {placement.origin}"


def _has_order_only(recording: Recording) -> bool:
    return recording.clock.ordered_only or "interval_ns" in recording.meta


def _saved_words(session: Session, path: str) -> str:
    folder = Path(path.strip()).resolve().parent
    beside = all(
        "://" not in one.source and Path(one.source).resolve().is_relative_to(folder)
        for one in session.recordings
    )
    if beside:
        return f"Saved. Open it again by its path: {path.strip()}"
    return (
        f"Saved to {path.strip()}. Its recordings are not in that folder, so only "
        "maiprof_nb.load(path, trust_paths=True) opens it."
    )


def _beside(session: Session) -> str:
    """A name for the session file in the folder of the recordings; empty if they have none."""
    folders = {Path(one.source).parent for one in session.recordings if "://" not in one.source}
    if not folders:
        return ""
    folder = next((one for one in sorted(folders) if one.is_dir()), Path())
    return str(folder / f"{folder.name or 'session'}{SUFFIX}")
