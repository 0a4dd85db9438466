"""py-spy's Chrome trace: frames that begin (B) and end (E), with true times."""

from __future__ import annotations

from typing import Any

import msgspec

from maiprof_nb.errors import LoadError
from maiprof_nb.loading._sampled_calls import SampledCalls, frame_name
from maiprof_nb.recording import Note, Recording
from maiprof_nb.timebase import NS_PER_US, Clock

NAME = "pyspy-chrometrace"

_HEAD_BYTES = 4096
_MARKS = (b'"cat":"py-spy"', b'"cat": "py-spy"')


def sniff(data: bytes) -> bool:
    """True if the first events are py-spy's."""
    head = data[:_HEAD_BYTES]
    return any(mark in head for mark in _MARKS)


def read(data: bytes, source: str) -> Recording:
    """Read the calls of every thread; times in ns since py-spy began.

    Raises
    ------
    LoadError
        If the file is damaged or holds no call.
    """
    try:
        events = msgspec.json.decode(data)
        if isinstance(events, dict):
            events = events["traceEvents"]
        calls, unmatched = _calls(events)
    except (msgspec.DecodeError, KeyError, TypeError, ValueError, RecursionError) as problem:
        raise LoadError(
            f"is a damaged trace of py-spy ({type(problem).__name__}: {problem})",
            where=source,
            remedy="Record again; py-spy writes the file when it ends",
        ) from problem
    if not calls.names:
        raise LoadError(
            "is a trace of py-spy without any call", where=source, remedy="Record for longer"
        )
    notes = []
    if unmatched:
        text = "Frames were still open when the recording ended, or end without a beginning."
        notes.append(Note("frames-unmatched", text, unmatched))
    return Recording(
        source=source,
        kind="stacks",
        format=NAME,
        tables={"python_calls": calls.table()},
        clock=Clock(None, "time since py-spy began; it states no wall clock"),
        notes=tuple(notes),
        events={"calls": len(calls.names)},
        meta={"exporter": "py-spy"},
    )


def _calls(events: list[dict[str, Any]]) -> tuple[SampledCalls, int]:
    calls, unmatched, last = SampledCalls(), 0, 0
    open_: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for event in events:
        phase = event.get("ph")
        if phase not in ("B", "E", "X"):
            continue
        args = event.get("args") or {}
        name = frame_name(event.get("name", "?"), args.get("filename"), args.get("line"))
        where = (str(event.get("pid", "")), str(event.get("tid", "")))
        at = round(event["ts"] * NS_PER_US)
        last = max(last, at)
        stack = open_.setdefault(where, [])
        if phase == "B":
            stack.append((name, at))
        elif phase == "X":
            end = at + round(event.get("dur", 0) * NS_PER_US)
            calls.add(name, at, end, where, len(stack))
        elif stack and stack[-1][0] == name:
            _, start = stack.pop()
            calls.add(name, start, at, where, len(stack))
        else:
            unmatched += 1
    for where, stack in open_.items():
        for depth, (name, start) in enumerate(stack):
            calls.add(name, start, last, where, depth)
            unmatched += 1
    return calls, unmatched
