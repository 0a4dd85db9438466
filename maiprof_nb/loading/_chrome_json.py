"""Chrome-trace JSON bytes -> events, strictly and fast, or event by event where that fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from maiprof_nb.loading import _json_repair
from maiprof_nb.recording import Note

_BOM = b"\xef\xbb\xbf"
_WHITE = b" \t\r\n"
NO_ARGS = msgspec.Raw(b"{}")


class Event(msgspec.Struct, gc=False):
    """One event as written; `args` stay undecoded."""

    ph: str = ""
    cat: str | None = None
    name: str | None = None
    pid: int | float | str | None = None
    tid: int | float | str | None = None
    ts: int | float | str | None = None
    dur: int | float | str | None = None
    id: int | float | str | None = None
    args: msgspec.Raw = NO_ARGS


class _ExactTime(msgspec.Struct, gc=False):
    ts: msgspec.Raw = msgspec.Raw(b"null")


@dataclass(frozen=True)
class Contents:
    """What a trace file holds: its events, everything else at top level, and notes."""

    events: list[Event]
    meta: dict[str, Any]
    notes: list[Note]
    exact: bytes | None = None  # the JSON array of events, where it parsed strictly

    def exact_times(self) -> list[bytes]:
        """Every event's ``ts`` as it is written, for times a double cannot hold."""
        if self.exact is None:
            return [str(event.ts).encode() for event in self.events]
        return [bytes(e.ts) for e in msgspec.json.decode(self.exact, type=list[_ExactTime])]


def sniff(data: bytes) -> bool:
    """True for an object with ``traceEvents`` or a list whose first object is an event."""
    start = data[:64].removeprefix(_BOM).lstrip(_WHITE)[:1]
    if start == b"{":
        return b'"traceEvents"' in data
    if start != b"[":
        return False
    head = data[:65536]
    return b'"ph"' in head or head.removeprefix(_BOM).translate(None, _WHITE) == b"[]"


def parse(data: bytes) -> Contents:
    """Events and metadata of a trace.

    Well-formed JSON takes one typed pass; anything else is read event by event, and what
    was repaired or lost is noted.
    """
    notes: list[Note] = []
    if data.startswith(_BOM):
        data = data[len(_BOM) :]
        notes.append(Note("byte-order-mark", "A byte order mark before the JSON was skipped."))
    try:
        events, meta, exact = _strict(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        text = (
            f"The file is not what a trace should be ({problem}); its events were read one by one."
        )
        notes.append(Note("read-with-repairs", text))
        found = _json_repair.read(data)
        events = [_event(raw) for raw in found.events]
        return Contents(events, found.meta, notes + found.notes)
    return Contents(events, meta, notes, exact)


def _strict(data: bytes) -> tuple[list[Event], dict[str, Any], bytes]:
    if data.lstrip(_WHITE)[:1] == b"[":
        return msgspec.json.decode(data, type=list[Event]), {}, data
    top = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    exact = bytes(top.pop("traceEvents", b"[]"))
    meta = {key: msgspec.json.decode(value) for key, value in top.items()}
    return msgspec.json.decode(exact, type=list[Event]), meta, exact


def _event(found: dict[str, Any]) -> Event:
    args = found.get("args")
    return Event(
        ph=str(found.get("ph", "")),
        cat=_text(found.get("cat")),
        name=_text(found.get("name")),
        pid=_scalar(found.get("pid")),
        tid=_scalar(found.get("tid")),
        ts=_scalar(found.get("ts")),
        dur=_scalar(found.get("dur")),
        id=_scalar(found.get("id")),
        args=NO_ARGS if args is None else msgspec.Raw(msgspec.json.encode(args)),
    )


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _scalar(value: Any) -> int | float | str | None:
    return value if isinstance(value, int | float | str) else None
