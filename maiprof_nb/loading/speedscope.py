"""Speedscope profiles, as py-spy and other samplers of stacks write them."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from maiprof_nb.errors import LoadError
from maiprof_nb.loading._sampled_calls import SampledCalls, frame_name
from maiprof_nb.recording import Note, Recording
from maiprof_nb.timebase import NS_PER_MS, NS_PER_S, NS_PER_US, Clock

NAME = "speedscope"

_MARK = b"https://www.speedscope.app/file-format-schema.json"
_HEAD_BYTES = 64 * 2**10
_UNITS = {
    "nanoseconds": 1,
    "microseconds": NS_PER_US,
    "milliseconds": NS_PER_MS,
    "seconds": NS_PER_S,
}
_SAMPLE_NS = 10 * NS_PER_MS  # py-spy's default rate, for files that only count
_THREAD = re.compile(r"(?:Process (?P<pid>\d+) )?Thread (?P<tid>\w+)(?: \"(?P<name>.*)\")?$")


def sniff(data: bytes) -> bool:
    """True for a JSON object that names speedscope's schema, at its beginning or its end."""
    start = data[:_HEAD_BYTES].lstrip()[:1] == b"{"
    return start and (_MARK in data[:_HEAD_BYTES] or _MARK in data[-_HEAD_BYTES:])


def read(data: bytes, source: str) -> Recording:
    """Read the stacks of every thread.

    Raises
    ------
    LoadError
        If the file is damaged or holds no sample of a stack.

    Notes
    -----
    A sampled profile holds an order of samples and the time each stands for. Times between
    samples that a sampler left out (py-spy leaves out threads that wait, unless run with
    --idle) are not in the file, so later samples lie too early.
    """
    try:
        content = json.loads(data)
        frames = content["shared"]["frames"]
        names = [frame_name(f.get("name", "?"), f.get("file"), f.get("line")) for f in frames]
        profiles = content["profiles"]
        calls, units, sampled = SampledCalls(), set(), 0
        for number, profile in enumerate(profiles):
            units.add(str(profile.get("unit")))
            sampled += profile.get("type") == "sampled"
            _read_profile(profile, names, number, calls)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as problem:
        raise LoadError(
            f"is a damaged speedscope profile ({type(problem).__name__}: {problem})",
            where=source,
            remedy="Record again; py-spy writes the file when it ends",
        ) from problem
    if not calls.names:
        raise LoadError(
            "is a speedscope profile without any sample",
            where=source,
            remedy="Record for longer, and with --idle to see threads that wait",
        )
    timed = units <= set(_UNITS)
    exporter = str(content.get("exporter") or "a sampler")
    return Recording(
        source=source,
        kind="stacks",
        format=NAME,
        tables={"python_calls": calls.table()},
        clock=Clock(None, f"{exporter} states no wall clock"),
        notes=tuple(_notes(calls, sampled=sampled > 0, timed=timed)),
        events={"profiles": len(profiles), "frames": len(frames)},
        meta={"exporter": exporter, "without_times": not timed},
    )


def _read_profile(
    profile: dict[str, Any], names: list[str], number: int, calls: SampledCalls
) -> None:
    unit = _UNITS.get(str(profile.get("unit")), _SAMPLE_NS)
    pid, tid = _thread(str(profile.get("name", "")), number)
    if profile.get("type") == "evented":
        _read_events(profile, names, unit, calls, (pid, tid))
        return
    start = float(profile.get("startValue", 0))
    moments = [start]
    for weight in profile["weights"]:
        if not math.isfinite(weight) or weight < 0:
            raise ValueError("a weight is no length of time")
        moments.append(moments[-1] + weight)
    edges = [round(moment * unit) for moment in moments]
    samples = zip(edges[:-1], edges[1:], profile["samples"], strict=True)
    calls.add_samples(samples, names, pid, tid)


def _read_events(
    profile: dict[str, Any], names: list[str], unit: int, calls: SampledCalls,
    where: tuple[str, str],
) -> None:  # fmt: skip
    open_: list[tuple[int, int]] = []
    for event in profile["events"]:
        at, frame = round(float(event["at"]) * unit), event["frame"]
        if event["type"] == "O":
            open_.append((frame, at))
        elif open_ and open_[-1][0] == frame:
            _, start = open_.pop()
            calls.add(names[frame], start, at, where, len(open_))
    end = round(float(profile.get("endValue", 0)) * unit)
    for depth, (frame, start) in enumerate(open_):
        calls.add(names[frame], start, end, where, depth)


def _thread(name: str, number: int) -> tuple[str, str]:
    """Process and thread of a profile's name; its number where that says neither."""
    found = _THREAD.match(name)
    if not found:
        return "", name or f"profile {number}"
    label = f" {found['name']}" if found["name"] else ""
    return found["pid"] or "", f"{found['tid']}{label}"


def _notes(calls: SampledCalls, *, sampled: bool, timed: bool) -> list[Note]:
    notes = []
    if not timed:
        text = "The file counts samples and has no times; each is taken to stand for 10 ms."
        notes.append(Note("stacks-without-times", text))
    elif sampled:
        text = (
            "Stacks were sampled one after another; if threads that wait were left out (py-spy "
            "without --idle), what follows a wait lies too early. The chrometrace format has true "
            "times."
        )
        notes.append(Note("stacks-sampled", text))
    if calls.too_deep:
        notes.append(Note("stacks-cut", "Stacks are deeper than 1000 frames.", calls.too_deep))
    return notes
