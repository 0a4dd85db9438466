"""The active memory timeline, drawn on a canvas and linked to the other views."""

from __future__ import annotations

import logging
from typing import Any

import anywidget
import traitlets

from maiprof_nb.analysis.active_memory import (
    MemoryDevice,
    MemoryLog,
    MemoryPicture,
    picture_of,
)
from maiprof_nb.analysis.memory_by_event import events_of, times_of
from maiprof_nb.analysis.memory_groups import GROUPINGS
from maiprof_nb.analysis.memory_search import allocations_like
from maiprof_nb.errors import MaiprofError
from maiprof_nb.session import Session
from maiprof_nb.timebase import NS_PER_US, TimeWindow
from maiprof_widgets.link import LinkState, Selection
from maiprof_widgets.views import _memory_words as words
from maiprof_widgets.views._memory_shown import MAX_BANDS, ShownMemory, in_ns, in_us, shown_memory
from maiprof_widgets.views._static import module, styles
from maiprof_widgets.views.memory_device import Options, device_options

_log = logging.getLogger(__name__)

_MAX_COLUMNS, _MAX_ROWS = 4096, 2**20
_TIP_FRAMES = 6


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
    axis : str
        ``time``, or ``event``: every change of memory as wide as the next.
    colour_by : str
        ``stack``, ``category``, ``module``, ``phase``, ``stream`` or ``age``.
    search : str
        What stays coloured while the rest fades: part of a function, file, operator or module,
        or a size as ``>10MiB``; several words must all match.
    theme : str
        ``auto`` (that of JupyterLab, Voila or the reader's system), ``light`` or ``dark``.
    height : int
        Of the drawing, in CSS pixels; set it before display.
    status : str
        What went wrong last, as a sentence; empty when nothing did.

    Notes
    -----
    Follows ``link.window``, ``link.ranks``, ``link.moment_ns`` (a thin line) and
    ``link.selection``: an allocation, a stack, or an operator, range, kernel, module or step,
    whose allocations stay coloured. Sets ``link.window`` by zooming, ``link.selection`` (table
    ``allocations`` or ``stacks``) by a click on a band and ``link.moment_ns`` by one above the
    bands. Snapshots without times, or with a clock that could not be tied to the session, keep
    an axis of their own; their moments are on that axis.
    """

    _esm = module("memory.js")
    _css = styles("views.css")

    about = traitlets.Dict().tag(sync=True)
    window_us = traitlets.List(traitlets.Float(), default_value=[0.0, 1.0]).tag(sync=True)
    moment_us = traitlets.Float(None, allow_none=True).tag(sync=True)
    selected = traitlets.Dict().tag(sync=True)
    lit = traitlets.Unicode("").tag(sync=True)
    theme = traitlets.Enum(("auto", "light", "dark"), default_value="auto").tag(sync=True)
    height = traitlets.Int(320).tag(sync=True)
    status = traitlets.Unicode("").tag(sync=True)

    axis = traitlets.Enum(("time", "event"), default_value="time")
    colour_by = traitlets.Enum(tuple(GROUPINGS), default_value="stack")
    search = traitlets.Unicode("")
    session = traitlets.Instance(Session)
    link = traitlets.Instance(LinkState)

    def __init__(self, session: Session, link: LinkState | None = None, **traits: Any) -> None:
        self._options: Options = []
        self._device: MemoryDevice | None = None
        self._own_window: TimeWindow | None = None
        self._events: tuple[TimeWindow, TimeWindow] | None = None  # zoomed to, and their times
        super().__init__(session=session, link=link or LinkState(), **traits)
        self._guarded(self._show_session)
        for name, action in (
            ("session", self._show_session),
            ("axis", self._show_device),
            ("colour_by", self._show_device),
            ("search", self._show_lit),
        ):
            self.observe(self._on_change(action), name)
        for name, action in (
            ("ranks", self._show_session),
            ("window", self._show_window),
            ("selection", self._show_selection),
            ("moment_ns", self._show_moment),
        ):
            self.link.observe(self._on_change(action), name)
        self.on_msg(self._received)

    @property
    def device(self) -> MemoryDevice | None:
        """Whose memory is shown; None when nothing is known of any."""
        return self._device

    @property
    def log(self) -> MemoryLog:
        """The replayed log of that device."""
        return self._memory().log

    @property
    def time_window(self) -> TimeWindow:
        """The time shown, in ns of the log's axis, also where the axis counts events."""
        return self._asked_window or self._time_extent

    @property
    def window(self) -> TimeWindow:
        """What is shown, on the view's axis: ns, or event numbers."""
        if not self._by_event:
            return self.time_window
        asked = self._asked_window
        if asked is None:
            return self._extent
        if self._events is not None and self._events[1] == asked:
            return self._events[0]
        return events_of(self.log, asked)

    def picture(self, columns: int = 1000) -> MemoryPicture:
        """What the view draws now, `columns` pixels wide."""
        drawn = self._memory().events if self._by_event else self.log
        return picture_of(drawn, self.window, columns=columns, max_bands=MAX_BANDS)

    @property
    def _by_event(self) -> bool:
        timed = self._device is not None and self._device.axis in ("time", "own time")
        return timed and self.axis == "event"

    @property
    def _linked(self) -> bool:
        return self._device is None or self._device.axis == "time"

    @property
    def _asked_window(self) -> TimeWindow | None:
        return self.link.window if self._linked else self._own_window

    @property
    def _time_extent(self) -> TimeWindow:
        return self.session.window if self._linked else self.log.span

    @property
    def _extent(self) -> TimeWindow:
        return self._memory().events.span if self._by_event else self._time_extent

    def _memory(self) -> ShownMemory:
        return shown_memory(self.session, self._device)

    def _on_change(self, action: Any) -> Any:
        return lambda _change: self._guarded(action)

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
        self._options = device_options(self.session, self.link.ranks)
        devices = [device for _, device in self._options]
        if self._device not in devices:
            self._device = devices[0] if devices else None
        self._own_window = None
        self._show_device()

    def _show_device(self) -> None:
        if self._device is None:
            self.about = words.about_nothing(self.session)
            return
        log = self.log
        # the window first: the browser asks for a picture when `about` changes
        self._show_window()
        self._show_moment()
        self.about = {
            "title": f"Active memory: {log.device.label}",
            "axis": "order" if self._by_event else log.device.axis,
            "axes": self.axis if log.device.axis in ("time", "own time") else "",
            "colour_by": self.colour_by,
            "colours": list(GROUPINGS),
            "search": self.search,
            "x_title": words.x_title(log, event_axis=self._by_event),
            "extent_us": in_us(self._extent),
            "devices": [label for label, _ in self._options],
            "device": [device for _, device in self._options].index(log.device),
            "notices": words.notices(log),
            "rest_text": words.rest_text(log),
            "reserved": log.reserved_bytes is not None,
        }
        self._show_selection()

    def _show_window(self) -> None:
        if self._device is not None:
            self.window_us = in_us(self.window)

    def _show_moment(self) -> None:
        at = self.link.moment_ns
        if self._device is None or at is None:
            self.moment_us = None
        else:
            place = int(self.log.states_at(at)) if self._by_event else at
            self.moment_us = place / NS_PER_US

    def _show_selection(self) -> None:
        chosen = self._chosen
        found: dict[str, Any] = {}
        if chosen is not None and chosen.row is not None:
            if chosen.table == "allocations":
                found = self._memory().selected(chosen.row)
            elif chosen.table == "stacks":
                found = words.selected_stack(self.log, chosen.row)
        self.selected = found
        self._show_lit()

    def _show_lit(self) -> None:
        """The browser asks for another picture when this changes."""
        self.lit = f"{self.search} {self._chosen}"

    @property
    def _chosen(self) -> Selection | None:
        """What is chosen; row ids repeat between recordings, so none of another recording's."""
        chosen = self.link.selection
        if self._device is None or chosen is None:
            return None
        ours = chosen.recording in (None, self._device.recording)
        return chosen if ours or chosen.table not in ("allocations", "stacks") else None

    def _received(self, _widget: Any, content: dict[str, Any], _buffers: Any) -> None:
        answers = {
            "picture": self._send_picture,
            "band": self._send_band,
            "choose": self._choose,
            "moment": self._choose_moment,
            "device": self._choose_device,
            "axis": lambda told: self.set_trait("axis", told["axis"]),
            "colour": lambda told: self.set_trait("colour_by", told["by"]),
            "search": self._search,
        }
        answer = answers.get(content.get("kind", ""))
        if answer is not None:
            self._guarded(answer, content)

    def _send_picture(self, content: dict[str, Any]) -> None:
        reply: dict[str, Any] = {"kind": "picture", "view": content["view"], "id": content["id"]}
        buffers: list[bytes] = []
        window = None
        try:
            window = in_ns(content["start_us"], content["end_us"])
            memory = self._memory()
            times = times_of(memory.log, window) if self._by_event else window
            lit = memory.lit(self._chosen, self.search, times)
            drawn, buffers = memory.message(
                window, lit, event_axis=self._by_event, by=self.colour_by,
                columns=min(max(int(content["columns"]), 1), _MAX_COLUMNS),
                rows=min(max(int(content["rows"]), 1), _MAX_ROWS),
            )  # fmt: skip
            about_time = memory.window_lines(times, event_axis=self._by_event)
            lines = [line for line in (*lit.lines, *about_time) if line]
            about = {"from_us": content["start_us"], "to_us": content["end_us"], "lines": lines}
            reply |= drawn | about
        finally:  # also without a picture, or the browser would wait for it
            self.send(reply, buffers)
        if content.get("gesture"):
            self._look(window)

    def _look(self, window: TimeWindow) -> None:
        wanted = None if window == self._extent else window
        if self._by_event and wanted is not None:
            self._events = (wanted, times_of(self.log, wanted))
            wanted = self._events[1]
        if self._linked:
            self.link.window = wanted
        else:
            self._own_window = wanted
        self._show_window()

    def _send_band(self, content: dict[str, Any]) -> None:
        told = self._memory().tip(int(content["allocation"]))
        told["frames"] = told["frames"][:_TIP_FRAMES]
        which = {name: content[name] for name in ("view", "allocation")}
        self.send({"kind": "band", **which, **told})

    def _choose(self, content: dict[str, Any]) -> None:
        chosen = None
        if self._device is not None:
            for table in ("allocations", "stacks"):
                row = content.get(table)
                if row is not None:
                    chosen = Selection(table, row=int(row), recording=self._device.recording)
        self.link.selection = chosen

    def _search(self, content: dict[str, Any]) -> None:
        allocations_like(self.session, self.log, content["text"])  # says so if it makes no sense
        self.search = content["text"]

    def _choose_moment(self, content: dict[str, Any]) -> None:
        at = round(content["us"] * NS_PER_US)
        if self._by_event:
            at = int(self.log.ts_ns[min(max(at, 0), len(self.log.ts_ns) - 1)])
        self.link.moment_ns = at

    def _choose_device(self, content: dict[str, Any]) -> None:
        self._device = self._options[int(content["device"])][1]
        self._own_window, self._events = None, None
        self.link.selection = None  # its row is one of the other device's log
        self._show_device()
