"""The active memory timeline, drawn on a canvas and linked to the other views."""

from __future__ import annotations

import logging
from typing import Any

import anywidget
import numpy as np
import traitlets

from maiprof_nb.analysis.active_memory import (
    MemoryDevice,
    MemoryLog,
    MemoryPicture,
    memory_devices,
    memory_log,
    picture_of,
)
from maiprof_nb.errors import MaiprofError
from maiprof_nb.session import Session
from maiprof_nb.timebase import NS_PER_US, TimeWindow
from maiprof_widgets.link import LinkState, Selection
from maiprof_widgets.views import _memory_words as words
from maiprof_widgets.views._static import module, styles

_log = logging.getLogger(__name__)

_MAX_BANDS = 3000  # what a browser paints in some milliseconds, whatever the size of the log
_MAX_COLUMNS = 4096
_TONES, _ROUNDS = 8, 3  # hues of the palette, and how often it is used before it repeats
_LEGEND_ROWS = 8
_TIP_FRAMES = 6
_COLUMN_ARRAYS = ("sample_us", "allocated_bytes", "rest_bytes", "reserved_bytes")
_BAND_ARRAYS = (
    "start_us",
    "end_us",
    "first_column",
    "end_column",
    "size_bytes",
    "stack",
    "allocation",
    "before_log",
)
_TYPE_CODES = {"float64": "f8", "int32": "i4", "uint16": "u2", "uint8": "u1"}


class MemoryView(anywidget.AnyWidget):
    """Live allocations as stacked bands over time; hover or click one for its stack.

    Parameters
    ----------
    session : Session
        What was recorded.
    link : LinkState, optional
        What is looked at, shared with other views; of its own by default.

    Attributes
    ----------
    session, link
        As given. A new `session` shows from its beginning.
    theme : str
        ``auto`` (that of JupyterLab, Voila or the reader's system), ``light`` or ``dark``.
    height : int
        Of the drawing, in CSS pixels; set it before display.
    status : str
        What went wrong last, as a sentence; empty when nothing did.

    Notes
    -----
    Follows ``link.window`` and ``link.ranks`` and sets ``link.window`` by zooming and
    ``link.selection`` (table ``allocations``) by a click. Snapshots without times, or with a
    clock that could not be tied to the session, keep an axis of their own.
    """

    _esm = module("memory.js")
    _css = styles("views.css")

    about = traitlets.Dict().tag(sync=True)
    window_us = traitlets.List(traitlets.Float(), default_value=[0.0, 1.0]).tag(sync=True)
    selected = traitlets.Dict().tag(sync=True)
    theme = traitlets.Enum(("auto", "light", "dark"), default_value="auto").tag(sync=True)
    height = traitlets.Int(320).tag(sync=True)
    status = traitlets.Unicode("").tag(sync=True)

    session = traitlets.Instance(Session)
    link = traitlets.Instance(LinkState)

    def __init__(self, session: Session, link: LinkState | None = None, **traits: Any) -> None:
        self._logs: dict[MemoryDevice, MemoryLog] = {}
        self._replayed_from: Session | None = None
        self._devices: tuple[MemoryDevice, ...] = ()
        self._device: MemoryDevice | None = None
        self._own_window: TimeWindow | None = None
        self._tones: dict[int, int] = {}
        super().__init__(session=session, link=link or LinkState(), **traits)
        self._guarded(self._show_session)
        self.observe(lambda _: self._guarded(self._show_session), "session")
        self.link.observe(lambda _: self._guarded(self._show_session), "ranks")
        self.link.observe(lambda _: self._guarded(self._show_window), "window")
        self.link.observe(lambda _: self._guarded(self._show_selection), "selection")
        self.on_msg(self._received)

    @property
    def device(self) -> MemoryDevice | None:
        """Whose memory is shown; None when nothing is known of any."""
        return self._device

    @property
    def window(self) -> TimeWindow:
        """What is shown, in ns of the view's axis."""
        if self._linked:
            return self.link.window or self._extent
        return self._own_window or self._extent

    def picture(self, columns: int = 1000) -> MemoryPicture:
        """What the view draws now, `columns` pixels wide."""
        return picture_of(self._replayed(), self.window, columns=columns, max_bands=_MAX_BANDS)

    @property
    def _linked(self) -> bool:
        return self._device is None or self._device.axis == "time"

    @property
    def _extent(self) -> TimeWindow:
        return self.session.window if self._linked else self._replayed().span

    def _replayed(self) -> MemoryLog:
        if self._device not in self._logs:
            log = memory_log(self.session, self._device)
            self._logs[log.device] = log
            return log
        return self._logs[self._device]

    def _guarded(self, action: Any, *args: Any) -> None:
        """Do it; what goes wrong stands under the view."""
        try:
            action(*args)
        except MaiprofError as problem:
            self.status = problem.sentence
        except Exception as problem:  # noqa: BLE001 - a callback has nobody else to tell
            _log.debug("memory view", exc_info=True)
            self.status = f"The memory view could not do that: {problem or type(problem).__name__}"
        else:
            self.status = ""

    def _show_session(self) -> None:
        known = memory_devices(self.session)
        ranks = self.link.ranks
        if self._replayed_from is not self.session:
            self._logs, self._replayed_from = {}, self.session
        self._devices = tuple(
            d for d in known if ranks is None or d.rank is None or d.rank in ranks
        )
        if self._device not in self._devices:
            self._device = self._devices[0] if self._devices else None
        self._show_device()

    def _show_device(self) -> None:
        self._own_window = None
        if self._device is None:
            self.about = {
                "empty": words.EMPTY,
                "title": "Active memory",
                "notices": [],
                "devices": [],
                "device": 0,
                "axis": "time",
                "extent_us": [0.0, 1.0],
            }
            return
        log = self._replayed()
        self._tones = _tones(log)
        # the window first: the browser asks for a picture when `about` changes
        self._show_window()
        self.about = {
            "title": f"Active memory: {log.device.label}",
            "axis": log.device.axis,
            "x_title": words.x_title(log),
            "extent_us": _in_us(self._extent),
            "devices": [device.label for device in self._devices],
            "device": self._devices.index(log.device),
            "notices": words.notices(log),
            "rest_text": words.rest_text(log),
            "reserved": log.reserved_bytes is not None,
        }
        self._show_selection()

    def _show_window(self) -> None:
        if self._device is not None:
            self.window_us = _in_us(self.window)

    def _show_selection(self) -> None:
        chosen = self.link.selection
        found: dict[str, Any] = {}
        if chosen is not None and chosen.row is not None and self._is_ours(chosen):
            if chosen.table == "allocations":
                found = words.selected(self._replayed(), chosen.row)
            elif chosen.table == "stacks":
                found = words.selected_stack(self._replayed(), chosen.row)
        self.selected = found

    def _is_ours(self, chosen: Selection) -> bool:
        """Row ids repeat between recordings, so one of another recording means nothing here."""
        return self._device is not None and chosen.recording in (None, self._device.recording)

    def _received(self, _widget: Any, content: dict[str, Any], _buffers: Any) -> None:
        answers = {
            "picture": self._send_picture,
            "stack": self._send_stack,
            "choose": self._choose,
            "device": self._choose_device,
        }
        answer = answers.get(content.get("kind", ""))
        if answer is not None:
            self._guarded(answer, content)

    def _send_picture(self, content: dict[str, Any]) -> None:
        reply: dict[str, Any] = {"kind": "picture", "view": content["view"], "id": content["id"]}
        buffers: list[bytes] = []
        window = None
        try:
            window = _in_ns(content["start_us"], content["end_us"])
            columns = min(max(int(content["columns"]), 1), _MAX_COLUMNS)
            log = self._replayed()
            picture = picture_of(log, window, columns=columns, max_bands=_MAX_BANDS)
            arrays = self._arrays(picture)
            buffers = [array.tobytes() for array in arrays.values()]
            reply |= {
                "arrays": [[name, _TYPE_CODES[str(a.dtype)]] for name, a in arrays.items()],
                "from_us": content["start_us"],
                "to_us": content["end_us"],
                "peak": _peak(log, picture),
                "legend": self._legend(log, picture),
                "in_words": words.in_words(log, picture),
            }
        finally:  # also without a picture, or the browser would wait for it
            self.send(reply, buffers)
        if content.get("gesture"):
            self._look(window)

    def _look(self, window: TimeWindow) -> None:
        wanted = None if window == self._extent else window
        if self._linked:
            self.link.window = wanted
        else:
            self._own_window = wanted
            self._show_window()

    def _send_stack(self, content: dict[str, Any]) -> None:
        stack = int(content["stack"])
        frames = [words.short(text) for text in words.brief_stack(self._replayed(), stack)]
        self.send(
            {
                "kind": "stack",
                "view": content["view"],
                "stack": stack,
                "frames": frames[:_TIP_FRAMES],
                "count": len(frames),
            }
        )

    def _choose(self, content: dict[str, Any]) -> None:
        row = content["row"]
        chosen = None
        if row is not None and self._device is not None:
            chosen = Selection("allocations", row=int(row), recording=self._device.recording)
        self.link.selection = chosen

    def _choose_device(self, content: dict[str, Any]) -> None:
        self._device = self._devices[int(content["device"])]
        self.link.selection = None  # its row is one of the other device's log
        self._show_device()

    def _arrays(self, picture: MemoryPicture) -> dict[str, Any]:
        arrays = {name: getattr(picture, name) for name in (*_COLUMN_ARRAYS, *_BAND_ARRAYS)}
        tones = [self._tones.get(stack, 0) for stack in picture.stack.tolist()]
        return {**arrays, "tone": np.array(tones, dtype=np.uint8)}

    def _legend(self, log: MemoryLog, picture: MemoryPicture) -> list[dict[str, Any]]:
        """The stacks that fill most of the picture, largest first."""
        columns = picture.end_column.astype(np.float64) - picture.first_column
        area = picture.size_bytes * columns
        old = picture.before_log.astype(bool) & (log.device.axis != "state")
        stacks, place = np.unique(picture.stack[~old], return_inverse=True)
        filled = np.bincount(place, area[~old], len(stacks))
        largest = [int(stacks[i]) for i in np.argsort(-filled)[:_LEGEND_ROWS]]
        entries: list[dict[str, Any]] = [
            {"label": name, "tone": self._tones.get(stack, 0), "rest": False}
            for stack, name in zip(largest, words.names(log, largest), strict=True)
        ]
        if old.any():
            entries.append({"label": "older than the log", "tone": None, "rest": False})
        if np.nansum(picture.rest_bytes) > 0:
            entries.append({"label": words.rest_label(log), "tone": None, "rest": True})
        return entries


def _tones(log: MemoryLog) -> dict[int, int]:
    """A colour for each stack, by bytes x time in the whole log, so that zooming keeps it."""
    lives = log.allocations
    end = lives["end_ns"].fillna(log.span.end_ns)
    weight = lives["size_bytes"] * (end - lives["ts_ns"] + 1).astype("float64")
    filled = weight.groupby(lives["stack"].fillna(-1)).sum().sort_values(ascending=False)
    return {int(stack): rank % (_TONES * _ROUNDS) for rank, stack in enumerate(filled.index)}


def _peak(log: MemoryLog, picture: MemoryPicture) -> dict[str, Any] | None:
    if np.isnan(picture.peak_bytes):
        return None
    return {
        "us": picture.peak_us,
        "bytes": picture.peak_bytes,
        "text": words.peak_text(log, picture),
    }


def _in_us(window: TimeWindow) -> list[float]:
    return [window.start_ns / NS_PER_US, window.end_ns / NS_PER_US]


def _in_ns(start_us: float, end_us: float) -> TimeWindow:
    return TimeWindow(round(start_us * NS_PER_US), round(end_us * NS_PER_US))
