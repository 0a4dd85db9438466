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

_DECODER = json.JSONDecoder(strict=False, parse_constant=lambda _: None)
_GAP = re.compile(r"[\s,]*")
_EVENT_START = re.compile(r'\{\s*"(?:ph|cat|name|pid|tid|ts|args)"\s*:')
_EVENTS_KEY = re.compile(r'"traceEvents"\s*:\s*\[')
_BARE = re.compile(
    r"(?<=[:\[,])(\s*)(?:[-+]?(?:inf(?:inity)?|nan)|N/A|None|undefined)(?=\s*[,\]}])", re.IGNORECASE
)
_BAD_ESCAPE = re.compile(r'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_CONSTANT = re.compile(r"(?<=[:\[,\s])-?(?:NaN|Infinity)(?=\s*[,\]}])")
_BACKSLASH = re.compile(r'\\(?!["\\])')
_TIME = re.compile(r'"ts"\s*:\s*(-?\d+(?:\.\d+)?)')
_LONE_SURROGATE = re.compile(
    r"(?<!\\)((?:\\\\)*)(?:\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2})"
)
_EXAMPLE = 60


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
    text, halves = _LONE_SURROGATE.subn(r"\1\\ufffd", text)
    if halves:
        tally.add(
            "half-character",
            "Halves of surrogate pairs were replaced by \N{REPLACEMENT CHARACTER}.",
            halves,
        )
    controls = len(_CONTROL.findall(text))
    if controls:
        tally.add("control-characters", "Raw control characters inside texts were kept.", controls)
    constants = len(_CONSTANT.findall(text))
    if constants:
        tally.add("not-a-number", "NaN and Infinity were read as missing.", constants)
    opening = _EVENTS_KEY.search(text)
    found = Found()
    if opening is None and not text.lstrip().startswith("["):
        tally.add("no-events", "The file ends before its list of events begins.")
        found.notes = tally.notes()
        return found
    start = opening.end() if opening else text.index("[") + 1
    end = _read_events(text, start, found.events, tally)
    if opening:
        found.meta = _outside(text[: opening.start()], "}", tally)
        found.meta |= _outside(text[end + 1 :], "", tally)
    found.notes = tally.notes()
    return found


def _read_events(text: str, start: int, events: list[dict[str, Any]], tally: Tally) -> int:
    """Append every readable event; return where the list ends."""
    position = start
    while True:
        position = _GAP.match(text, position).end()  # type: ignore[union-attr]
        if position >= len(text):
            if "cut" in tally.counts:
                return position
            tally.add(
                "cut", f"The file ends inside its list of events, after {len(events)} of them."
            )
            return position
        if text[position] == "]":
            if text[start:position].rstrip().endswith(","):
                tally.add("trailing-comma", "A comma after the last event was skipped.")
            return position
        try:
            event, after = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            event, after = _mend(text, position, tally)
        if isinstance(event, dict):
            events.append(_with_exact_time(event, text[position:after]))
        elif event is not None:
            example = " ".join(text[position : position + _EXAMPLE].split())
            tally.add("event-lost", f"An event is no object, at character {position}: {example}")
        if after <= position:
            return position
        position = after


def _with_exact_time(event: dict[str, Any], written: str) -> dict[str, Any]:
    """The event with its time as text where a double cannot hold the decimals."""
    time = event.get("ts")
    if isinstance(time, float) and time >= EXACT_BELOW_US:
        found = _TIME.findall(written)
        event["ts"] = next((text for text in found if float(text) == time), time)
    return event


def _mend(text: str, position: int, tally: Tally) -> tuple[Any, int]:
    """Repair the event at `position`, or give it up and go on at the next one."""
    following = _next_event(text, position)
    piece = text[position:following]
    mended, bare = _BARE.subn(r"\1null", piece)
    escapes = len(_BAD_ESCAPE.findall(mended))
    if escapes:  # a writer that escapes no backslash means none of them as an escape
        mended = _BACKSLASH.sub(r"\\\\", mended)
    try:
        event, used = _DECODER.raw_decode(mended)
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


def _outside(piece: str, closing: str, tally: Tally) -> dict[str, Any]:
    """Metadata before or behind the list of events, if it reads."""
    body, bare = _BARE.subn(r"\1null", piece.strip().strip(",").strip())
    if not body.strip("{} \r\n"):
        return {}
    if bare:
        text = "Values such as inf, nan or N/A were read as missing, first in the metadata."
        tally.add("bare-number", text, bare)
    try:
        found = json.loads(body + closing if closing else "{" + body, strict=False)
    except (ValueError, RecursionError):
        example = " ".join(body[:_EXAMPLE].split())
        tally.add("metadata-lost", f"What the file says about itself cannot be read: {example}")
        return {}
    return found if isinstance(found, dict) else {}
