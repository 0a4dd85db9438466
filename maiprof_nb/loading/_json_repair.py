"""Reads a trace that is not valid JSON: event by event, losing as little as can be.

Handles what profilers, editors and killed processes really leave behind: cut files,
trailing commas, NaN and inf, unquoted tokens, control characters, bad UTF-8, invalid
escapes, unescaped quotes. Each repair and each loss is a note with a count and an example.
"""

from __future__ import annotations

import codecs
import json
import re
from dataclasses import dataclass, field
from typing import Any

from maiprof_nb.loading._kineto_times import EXACT_BELOW_US
from maiprof_nb.loading._tally import Tally
from maiprof_nb.recording import Note

_GAP = re.compile(r"[\s,]*")
_EVENT_START = re.compile(r'\{\s*"(?:ph|cat|name|pid|tid|ts|args)"\s*:')
_EVENTS_KEY = re.compile(r'"traceEvents"\s*:\s*\[')
_TEXT_OR_BARE = re.compile(
    r'"(?:[^"\\]|\\.)*+(?:"|\Z)'  # without an end too, or each quote would be tried again
    r"|(?<=[:\[,\s])(?:[-+]?(?:inf(?:inity)?|nan)|N/A|None|undefined)(?=\s*[,\]}])",
    re.IGNORECASE | re.DOTALL,
)
_BAD_ESCAPE = re.compile(r'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_BACKSLASH = re.compile(r'\\(?!["\\])')
_TIME = re.compile(r'"ts"\s*:\s*(-?\d+(?:\.\d+)?)')
_SURROGATES = re.compile(
    r"(?<!\\)(\\++)u([dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|[dD][89a-fA-F][0-9a-fA-F]{2})"
)
_EXAMPLE = 60
_NEAR = 8 * 2**10  # characters, at first: an error counts the lines of all the text it is given
_TAIL = 32  # an error as near to the end of that text may come from its end
_MAX_DEEP = 50  # each costs a thousand calls


@dataclass
class Found:
    """What could be read."""

    events: list[dict[str, Any]] = field(default_factory=list)
    meta: dict[str, Any] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)


def read(data: bytes) -> Found:
    """Events and metadata of a damaged trace."""
    tally = Tally()
    text = data.decode("utf-8-sig", errors="replace")
    if data.startswith(codecs.BOM_UTF8):
        tally.add("byte-order-mark", "A byte order mark before the JSON was skipped.")
    replaced = text.count("\N{REPLACEMENT CHARACTER}") - data.count(
        "\N{REPLACEMENT CHARACTER}".encode()
    )
    if replaced:
        tally.add(
            "bad-utf8",
            "Bytes that are not UTF-8 were replaced by \N{REPLACEMENT CHARACTER}.",
            replaced,
        )
    text = _without_halves(text, tally)
    controls = len(_CONTROL.findall(text))
    if controls:
        tally.add("control-characters", "Raw control characters inside texts were kept.", controls)
    opening = _EVENTS_KEY.search(text)
    found = Found()
    if opening is None and not text.lstrip().startswith("["):
        tally.add("no-events", "The file ends before its list of events begins.")
        found.notes = tally.notes()
        return found
    start = opening.end() if opening else text.index("[") + 1
    decoder = _Decoder(tally)
    end = _read_events(text, start, found.events, decoder)
    if opening:
        found.meta = _outside(text[: opening.start()], "}", decoder)
        found.meta |= _outside(text[end + 1 :], "", decoder)
    found.notes = tally.notes()
    return found


class _Decoder:
    """Decodes JSON that may hold NaN and Infinity, which become missing and are counted."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self._constants: list[str] = []
        self._json = json.JSONDecoder(strict=False, parse_constant=self._constants.append)

    def decode(self, text: str, position: int = 0) -> tuple[Any, int]:
        """The value at `position`, and where it ends; ValueError or RecursionError if none."""
        size = _NEAR
        while True:
            near = text[position : position + size]
            whole = position + size >= len(text)
            self._constants.clear()
            try:
                value, used = self._json.raw_decode(near)
            except json.JSONDecodeError as problem:
                torn = problem.pos > size - _TAIL or problem.msg.startswith("Unterminated")
                if whole or not torn:
                    raise
            else:
                if whole or used < len(near):
                    text_of_note = "NaN and Infinity were read as missing."
                    self.tally.add("not-a-number", text_of_note, len(self._constants))
                    return value, position + used
            size *= 16


def _without_halves(text: str, tally: Tally) -> str:
    """Escapes of half a surrogate pair are no text that could be kept or shown."""

    def mended(found: re.Match[str]) -> str:
        escaped = len(found[1]) % 2 == 0
        if escaped or len(found[2]) > len("d83d"):
            return found[0]
        mark = "\N{REPLACEMENT CHARACTER}"
        tally.add("half-character", f"Halves of surrogate pairs were replaced by {mark}.")
        return f"{found[1]}ufffd"

    return _SURROGATES.sub(mended, text)


def _read_events(text: str, start: int, events: list[dict[str, Any]], decoder: _Decoder) -> int:
    """Append every readable event; return where the list ends."""
    tally = decoder.tally
    position, deep = start, 0
    while True:
        position = _GAP.match(text, position).end()  # type: ignore[union-attr]
        if position >= len(text) or text[position] == "]":
            _note_the_end(text[start:position], len(events), tally, cut=position >= len(text))
            return position
        try:
            event, after = decoder.decode(text, position)
        except RecursionError:
            deep += 1
            if deep > _MAX_DEEP:
                reason = f"Events are nested too deep; the rest is lost, from character {position}."
                tally.add("cut", reason)
                return len(text)
            event, after = _mend(text, position, decoder)
        except ValueError:
            event, after = _mend(text, position, decoder)
        else:
            if not isinstance(event, dict):
                example = " ".join(text[position : position + _EXAMPLE].split())
                reason = f"An event is no object, at character {position}: {example}"
                tally.add("event-lost", reason)
        if isinstance(event, dict):
            events.append(_with_exact_time(event, text[position:after]))
        if after <= position:
            return position
        position = after


def _note_the_end(listed: str, count: int, tally: Tally, *, cut: bool) -> None:
    """Say what is odd about the end of the list of events."""
    if cut and "cut" not in tally.counts:
        tally.add("cut", f"The file ends inside its list of events, after {count} of them.")
    elif not cut and listed[-_EXAMPLE:].rstrip().endswith(","):
        tally.add("trailing-comma", "A comma after the last event was skipped.")


def _bare_to_null(piece: str) -> tuple[str, int]:
    """Tokens such as inf and N/A outside texts -> null, and how many there were."""
    count = 0

    def mended(found: re.Match[str]) -> str:
        nonlocal count
        if found[0].startswith('"'):
            return found[0]
        count += 1
        return "null"

    return _TEXT_OR_BARE.sub(mended, piece), count


def _with_exact_time(event: dict[str, Any], written: str) -> dict[str, Any]:
    """The event with its time as text where a double cannot hold the decimals."""
    time = event.get("ts")
    if isinstance(time, float) and time >= EXACT_BELOW_US:
        found = _TIME.findall(written)
        event["ts"] = next((text for text in found if float(text) == time), time)
    return event


def _mend(text: str, position: int, decoder: _Decoder) -> tuple[Any, int]:
    """Repair the event at `position`, or give it up and go on at the next one."""
    following = _next_event(text, position)
    piece = text[position:following]
    tally = decoder.tally
    mended, bare = _bare_to_null(piece)
    escapes = len(_BAD_ESCAPE.findall(mended))
    if escapes:  # a writer that escapes no backslash means none of them as an escape
        mended = _BACKSLASH.sub(r"\\\\", mended)
    try:
        event, used = decoder.decode(mended)
    except (ValueError, RecursionError):
        event, used = None, 0
    if isinstance(event, dict) and "ph" in event:
        where = f"first at character {position}"
        if bare:
            tally.add(
                "bare-number",
                f"Values such as inf, nan or N/A were read as missing, {where}.",
                bare,
            )
        if escapes:
            tally.add(
                "bad-escape",
                f"Backslashes that escape nothing were kept as they are, {where}.",
                escapes,
            )
        closing = mended[used:].strip(" \t\r\n,")
        return event, following - len(mended[used:]) if closing else following
    example = " ".join(piece[:_EXAMPLE].split())
    if following >= len(text):
        tally.add("cut", f"The file ends inside an event, which is lost: {example}")
    else:
        tally.add("event-lost", f"An event cannot be read, at character {position}: {example}")
    return None, following


def _next_event(text: str, position: int) -> int:
    """Start of the next object that is an event and not somebody's args."""
    for match in _EVENT_START.finditer(text, position + 1):
        before = text[max(0, match.start() - 200) : match.start()].rstrip()
        if before.endswith((",", "[")) and before.rstrip(", \t\r\n").endswith(("}", "[")):
            return match.start()
    return len(text)


def _outside(piece: str, closing: str, decoder: _Decoder) -> dict[str, Any]:
    """Metadata before or behind the list of events, if it reads."""
    tally = decoder.tally
    body, bare = _bare_to_null(piece.strip().strip(",").strip())
    if not body.strip("{} \r\n"):
        return {}
    if bare:
        text = "Values such as inf, nan or N/A were read as missing, first in the metadata."
        tally.add("bare-number", text, bare)
    try:
        found, _ = decoder.decode(body + closing if closing else "{" + body)
    except (ValueError, RecursionError):
        example = " ".join(body[:_EXAMPLE].split())
        tally.add("metadata-lost", f"What the file says about itself cannot be read: {example}")
        return {}
    return found if isinstance(found, dict) else {}
