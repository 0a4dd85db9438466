"""The allocator's segments and their blocks at any moment, on a canvas, linked to other views."""

from __future__ import annotations

import logging
from typing import Any

import anywidget
import traitlets

from maiprof_nb.analysis.active_memory import MemoryDevice
from maiprof_nb.analysis.segment_picture import ORDERS, SegmentPicture
from maiprof_nb.errors import MaiprofError, NotAnswerableError
from maiprof_nb.session import Session
from maiprof_widgets.link import LinkState, Selection
from maiprof_widgets.views import _allocator_words as words
from maiprof_widgets.views._moments import moment_of, shares_moments
from maiprof_widgets.views._segment_log import SegmentLog
from maiprof_widgets.views._static import module, styles
from maiprof_widgets.views.delayed import Delayed
from maiprof_widgets.views.memory_device import Options, device_options
from maiprof_widgets.views.status import sentence_of

_LOG = logging.getLogger(__name__)

_QUIET_S = 0.25  # who holds the holes is worked out once scrubbing rests
_MAX_COLUMNS = 4096
_TYPE_CODES = {"float64": "f8", "float32": "f4", "int32": "i4", "uint8": "u1"}


class AllocatorStateView(anywidget.AnyWidget):
    """Segments cut into blocks at one moment of the log; scrub along it, forward and back.

    Where no moment is pointed at, that of the largest request that failed is shown, else the peak.

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
    order : str
        Of the segments within a pool and stream: ``address``, ``size`` or ``unused``.
    theme : str
        ``auto`` (that of the page), ``light`` or ``dark``.
    status : str
        What went wrong last, as a sentence; empty when nothing did.

    Notes
    -----
    Follows ``link.moment_ns`` and ``link.ranks``; sets ``link.moment_ns`` by scrubbing and
    ``link.selection`` (tables ``allocations`` and ``stacks``) by a click, and outlines what is
    selected. A log without times counts events in place of ns; where it is not the session's
    only recording, it keeps its moments to itself.
    """

    _esm = module("segments.js")
    _css = styles("views.css", "segments.css")

    about = traitlets.Dict().tag(sync=True)
    place = traitlets.Dict().tag(sync=True)
    selected = traitlets.Dict().tag(sync=True)
    holders = traitlets.Dict().tag(sync=True)
    order = traitlets.Enum(ORDERS, default_value="address").tag(sync=True)
    theme = traitlets.Enum(("auto", "light", "dark"), default_value="auto").tag(sync=True)
    status = traitlets.Unicode("").tag(sync=True)

    session = traitlets.Instance(Session)
    link = traitlets.Instance(LinkState)

    def __init__(self, session: Session, link: LinkState | None = None, **traits: Any) -> None:
        self._options: Options = []
        self._shown: SegmentLog | None = None
        self._state = 0
        super().__init__(session=session, link=link or LinkState(), **traits)
        self._later = Delayed(lambda: self._guarded(self._show_holders), _QUIET_S)
        self._guarded(self._show_session)
        self.observe(lambda _: self._guarded(self._show_session), "session")
        self.link.observe(lambda _: self._guarded(self._show_session), "ranks")
        self.link.observe(lambda _: self._guarded(self._follow_moment), "moment_ns")
        self.link.observe(lambda _: self._guarded(self._show_selection), "selection")
        self.on_msg(self._received)

    @property
    def device(self) -> MemoryDevice | None:
        """Whose memory is shown; None when there is no snapshot whose log can be followed."""
        return None if self._shown is None else self._shown.device

    @property
    def state(self) -> int:
        """The moment shown: how many events of the log came before it."""
        return self._state

    def show(self, state: int) -> None:
        """Go to a moment: the state after so many events of the log."""
        self._state = min(max(state, 0), self._known.history.last_state)
        self._tell_moment()
        self._moved()

    def picture(self, columns: int = 1200) -> SegmentPicture:
        """What the view draws now, `columns` pixels wide.

        Raises
        ------
        NotAnswerableError
            If there is no snapshot, or its log does not fit its segments.
        """
        return self._known.picture(self._state, columns, self.order)

    @property
    def _known(self) -> SegmentLog:
        if self._shown is None:
            raise NotAnswerableError(
                "there is no memory snapshot with segments to show",
                remedy="Load one that torch.cuda.memory._dump_snapshot wrote",
            )
        return self._shown

    @property
    def _linked(self) -> bool:
        return shares_moments(self.session, self._known.device)

    def _guarded(self, action: Any, *args: Any) -> None:
        """Do it; what goes wrong stands under the view."""
        try:
            action(*args)
        except MaiprofError as problem:
            self.status = sentence_of(problem)
        except Exception as problem:  # noqa: BLE001 - a view must never die silently
            _LOG.warning("the view of segments failed", exc_info=True)
            self.status = f"This view failed ({type(problem).__name__}: {problem})."
        else:
            self.status = ""

    def _show_session(self) -> None:
        ranks, before = self.link.ranks, self._shown
        self._options = device_options(self.session, ranks, kind="snapshot")
        devices = [device for _, device in self._options]
        if not devices:
            self._shown = None
            self.about = {"title": "Allocator state", "devices": [], "empty": words.EMPTY}
            return
        same = before is not None and before.device in devices
        if same and before is not None and before.session is self.session:
            self.about = {**self.about, **self._named(before.device)}
        else:
            self._show_device(before.device if before is not None and same else devices[0])

    def _named(self, device: MemoryDevice) -> dict[str, Any]:
        return {
            "title": f"Allocator state: {device.label}",
            "devices": [label for label, _ in self._options],
            "device": [known for _, known in self._options].index(device),
        }

    def _show_device(self, device: MemoryDevice) -> None:
        self._shown, shown = None, SegmentLog(self.session, device)
        try:
            about = shown.about()
        except MaiprofError as problem:
            about = {"empty": {"sentence": sentence_of(problem), "ways": []}}
        else:
            self._shown = shown
            self._state = self._wanted()
        self.about = self._named(device) | about
        if self._shown is not None:
            self._moved()

    def _wanted(self) -> int:
        """The state that the link points at; the most telling where it points nowhere."""
        at = self.link.moment_ns
        if at is None or not self._linked:
            return self._known.opening
        return self._known.history.state_at(at)

    def _follow_moment(self) -> None:
        if self._shown is None or not self._linked:
            return
        if self._moment() == self.link.moment_ns:  # several events may share a time stamp
            return
        self._state = self._wanted()
        self._moved()

    def _moment(self) -> int:
        return moment_of(self._known.history, self._state)

    def _tell_moment(self) -> None:
        if self._linked:
            self.link.moment_ns = self._moment()

    def _moved(self) -> None:
        """Let the browser ask for another moment, also where it has asked for others since."""
        self.place = {"state": self._state, "turn": self.place.get("turn", 0) + 1}
        self._show_selection()
        self._later.request()

    def _show_holders(self) -> None:
        if self._shown is not None:
            self.holders = {"state": self._state, **self._shown.holders(self._state)}

    def _show_selection(self) -> None:
        chosen, shown = self.link.selection, self._shown
        found: dict[str, Any] = {}
        if shown is not None and chosen is not None and chosen.row is not None:
            ours = chosen.recording in (None, shown.device.recording)
            if ours and chosen.table == "allocations":
                found = shown.selected_block(chosen.row, self._state)
            elif ours and chosen.table == "stacks":
                found = shown.selected_stack(chosen.row, self._state)
        self.selected = found

    def _received(self, _widget: Any, content: Any, _buffers: Any) -> None:
        answers = {
            "state": self._send_state,
            "block": self._send_block,
            "choose": self._choose,
            "stack": self._choose_stack,
            "device": self._choose_device,
        }
        answer = answers.get(content.get("kind", "")) if isinstance(content, dict) else None
        if answer is not None:
            self._guarded(answer, content)

    def _send_state(self, content: dict[str, Any]) -> None:
        reply: dict[str, Any] = {"kind": "state", "view": content["view"], "id": content["id"]}
        buffers: list[bytes] = []
        try:
            shown = self._known
            self._state = min(max(int(content["state"]), 0), shown.history.last_state)
            self.order = content.get("order", self.order)
            columns = min(max(int(content["columns"]), 1), _MAX_COLUMNS)
            focus = content.get("focus")
            told, arrays = shown.answer(
                self._state, columns=columns, order=self.order, focus=focus and int(focus)
            )
            reply |= told
            reply["arrays"] = [[name, _TYPE_CODES[str(a.dtype)]] for name, a in arrays.items()]
            buffers = [array.tobytes() for array in arrays.values()]
        finally:  # also without a picture, or the browser would wait for it
            self.send(reply, buffers)
        if content.get("gesture"):
            self._tell_moment()
            self._show_selection()
            self._later.request()

    def _send_block(self, content: dict[str, Any]) -> None:
        block = int(content["block"])
        tip = words.block_tip(self._known.history, self._known.log, block)
        self.send({"kind": "block", "view": content["view"], "block": block, **tip})

    def _choose(self, content: dict[str, Any]) -> None:
        block = content["block"]
        row = -1 if block is None else int(self._known.allocations[int(block)])
        self._select("allocations", row if row >= 0 else None)

    def _choose_stack(self, content: dict[str, Any]) -> None:
        self._select("stacks", int(content["stack"]))

    def _select(self, table: str, row: int | None) -> None:
        recording = self._known.device.recording
        chosen = None if row is None else Selection(table, row=row, recording=recording)
        self.link.selection = chosen

    def _choose_device(self, content: dict[str, Any]) -> None:
        self.link.selection = None  # its row is one of the other device's log
        self._show_device(self._options[int(content["device"])][1])
