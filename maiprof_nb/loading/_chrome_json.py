"""Chrome-trace JSON bytes -> events, strictly and in parts, or event by event where that fails."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from maiprof_nb.loading import _json_repair
from maiprof_nb.loading._event import NO_ARGS, AllArgs, Args, Event, ExactTime
from maiprof_nb.recording import Note

_BOM = b"\xef\xbb\xbf"
_WHITE = b" \t\r\n"
_FIRST_KEY = re.compile(rb'\s*\[\s*\{\s*("(?:[^"\\]|\\.){1,40}")\s*:')
PART_BYTES = 5 * 2**20
_ARGS = msgspec.json.Decoder(Args)


@dataclass
class Part:
    """Some consecutive events of a file.

    ``json`` is the JSON list they were read from; where they had to be repaired it is None,
    and ``repaired`` are the objects themselves.
    """

    first: int
    events: list[Event]
    json: bytes | None = None
    repaired: tuple[dict[str, Any], ...] = ()

    def exact_times(self) -> list[bytes]:
        """Every event's ``ts`` as it is written, for times a double cannot hold."""
        if self.json is None:
            return [str(event.ts).encode() for event in self.events]
        return [bytes(e.ts) for e in msgspec.json.decode(self.json, type=list[ExactTime])]

    @cached_property
    def _all_args(self) -> list[AllArgs]:
        return msgspec.json.decode(self.json or b"[]", type=list[AllArgs])

    def args(self, place: int) -> dict[str, Any]:
        """Everything in the args of the event at a place in this part; {} if no object."""
        if self.json is None:
            found = self.repaired[place].get("args")
        else:
            found = msgspec.json.decode(self._all_args[place].args)
        return found if isinstance(found, dict) else {}


@dataclass(frozen=True)
class Contents:
    """What a trace file holds beside its events, and the list of events still to be read."""

    meta: dict[str, Any]
    notes: list[Note]
    array: memoryview

    def parts(self) -> Iterator[Part]:
        """The events, some megabytes of JSON at a time.

        Raises
        ------
        msgspec.DecodeError
            If an event is not what it should be; then `repaired` reads the file.
        """
        decoder = msgspec.json.Decoder(list[Event])
        first = 0
        for start, end in _cuts(self.array):
            json = b"".join((b"[", self.array[start:end], b"]"))
            events = decoder.decode(json)
            yield Part(first, events, json)
            first += len(events)


def sniff(data: bytes) -> bool:
    """True for an object with ``traceEvents`` or a list whose first object is an event."""
    start = data[:64].removeprefix(_BOM).lstrip(_WHITE)[:1]
    if start == b"{":
        return b'"traceEvents"' in data
    if start != b"[":
        return False
    head = data[:65536]
    return b'"ph"' in head or head.removeprefix(_BOM).translate(None, _WHITE) == b"[]"


def outline(data: bytes) -> Contents:
    """Find metadata and the list of events without decoding the events.

    Raises
    ------
    msgspec.DecodeError, UnicodeDecodeError, RecursionError
        If the file is not valid JSON; then `repaired` reads it.
    """
    notes: list[Note] = []
    if data.startswith(_BOM):
        data = data[len(_BOM) :]
        notes.append(Note("byte-order-mark", "A byte order mark before the JSON was skipped."))
    if data[:64].lstrip(_WHITE)[:1] == b"[":
        return Contents({}, notes, memoryview(data))
    top = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    array = memoryview(top.pop("traceEvents", msgspec.Raw(b"[]")))
    meta = {key: msgspec.json.decode(value) for key, value in top.items()}
    return Contents(meta, notes, array)


def repaired(data: bytes, problem: Exception) -> tuple[dict[str, Any], list[Note], Part]:
    """Metadata, notes and all readable events of a file that is not a valid trace."""
    text = f"The file is not what a trace should be ({problem}); its events were read one by one."
    found = _json_repair.read(data)
    notes = [Note("read-with-repairs", text), *found.notes]
    events = [_event(raw) for raw in found.events]
    return found.meta, notes, Part(0, events, repaired=tuple(found.events))


def _cuts(array: memoryview) -> Iterator[tuple[int, int]]:
    """Byte ranges of the list's items, cut between events.

    A cut is made before an object that begins with the same key as the first event does. A
    list of such objects inside an event would be cut wrongly; its part is then not valid JSON.
    """
    start, stop = _inside(array)
    key = _FIRST_KEY.match(array[:4096])
    between = re.compile(rb"\}\s*(,)\s*\{\s*" + re.escape(key[1]) + rb"\s*:") if key else None
    while start < stop:
        found = between.search(array, start + PART_BYTES, stop) if between else None
        end = found.start(1) if found else stop
        yield start, end
        start = end + 1


def _inside(array: memoryview) -> tuple[int, int]:
    """Where the items of a JSON list begin and end."""
    head, tail = bytes(array[:64]), bytes(array[-64:])
    if not tail.rstrip(_WHITE).endswith(b"]"):
        raise msgspec.DecodeError("the list of events has no end")
    start = len(head) - len(head.lstrip(_WHITE)) + 1
    stop = len(array) - (len(tail) - len(tail.rstrip(_WHITE))) - 1
    if bytes(array[start:stop][:64]).strip(_WHITE) == b"":
        return stop, stop
    return start, stop


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
        args=_ARGS.decode(msgspec.json.encode(args)) if isinstance(args, dict) else NO_ARGS,
    )


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _scalar(value: Any) -> int | float | str | None:
    return value if isinstance(value, int | float | str) else None
