"""Collapsed stacks (``a;b;c 12``), as ``py-spy record --format raw`` writes them."""

from __future__ import annotations

import re

from maiprof_nb.errors import LoadError
from maiprof_nb.loading._sampled_calls import SampledCalls, frame_name
from maiprof_nb.recording import Note, Recording
from maiprof_nb.timebase import NS_PER_MS, Clock

NAME = "collapsed-stacks"

_HEAD_BYTES = 64 * 2**10
_LINE = re.compile(r"(?P<frames>\S.*) (?P<count>\d{1,12})\s*$")
_FRAME = re.compile(r"(?P<function>.+) \((?P<file>.+?)(?::(?P<line>\d+))?\)$")
_GROUP = re.compile(r"(?:process|thread) \(?\d+\)?(?::|$)")
_SAMPLE_NS = 10 * NS_PER_MS  # py-spy's default rate
_ENOUGH = 20


def sniff(data: bytes) -> bool:
    """True for text whose first lines are all frames, joined by ``;``, and a count."""
    head = data[:_HEAD_BYTES].decode("utf-8", "replace")
    lines = head.splitlines()
    if len(data) > _HEAD_BYTES:
        lines = lines[:-1]
    lines = [line for line in lines if line.strip()][:_ENOUGH]
    stacks = [line for line in lines if _LINE.match(line)]
    framed = sum(";" in line and bool(_FRAME.search(line.rsplit(" ", 1)[0])) for line in stacks)
    return bool(lines) and len(stacks) == len(lines) and framed * 2 > len(lines)


def read(data: bytes, source: str) -> Recording:
    """Read the stacks, one after another in the order of the file.

    Raises
    ------
    LoadError
        If no line holds a stack.

    Notes
    -----
    Only how often each stack was seen is known, not when: there are no times to place beside a
    trace. A sample is taken to stand for 10 ms, py-spy's default.
    """
    calls, bad, stacks = SampledCalls(), 0, 0
    now: dict[str, int] = {}
    known: dict[str, int] = {}
    names: list[str] = []
    for line in data.decode("utf-8", "replace").splitlines():
        found = _LINE.match(line)
        if not found:
            bad += bool(line.strip())
            continue
        parts = found["frames"].split(";")
        groups = [part for part in parts if _GROUP.match(part)]
        lane = "; ".join(groups) or "all threads"
        frames = []
        for part in parts:
            if part in groups:
                continue
            if part not in known:
                known[part] = len(names)
                names.append(_name(part))
            frames.append(known[part])
        start = now.get(lane, 0)
        end = now[lane] = start + int(found["count"]) * _SAMPLE_NS
        calls.add_samples([(start, end, frames)], names, "", lane)
        stacks += 1
    if not calls.names:
        raise LoadError(
            "holds no stacks", where=source, remedy="Record again with py-spy record --format raw"
        )
    text = (
        "Only how often each stack was seen is known, not when; a sample is taken to stand for "
        "10 ms. Record with py-spy record --format chrometrace for times."
    )
    notes = [Note("stacks-without-times", text)]
    if bad:
        notes.append(Note("line-unreadable", "Lines are no stacks and are left out.", bad))
    return Recording(
        source=source,
        kind="stacks",
        format=NAME,
        tables={"python_calls": calls.table()},
        clock=Clock(None, "counts of stacks, without times"),
        notes=tuple(notes),
        events={"stacks": stacks},
        meta={"without_times": True},
    )


def _name(part: str) -> str:
    found = _FRAME.match(part)
    if not found:
        return frame_name(part, None, None)
    line = int(found["line"]) if found["line"] else None
    return frame_name(found["function"], found["file"], line)
