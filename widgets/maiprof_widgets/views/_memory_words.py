"""What the memory view says in words."""

from __future__ import annotations

import re
from collections import Counter
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis.active_memory import HOST, MemoryLog, MemoryPicture
from maiprof_nb.analysis.allocations_during import During
from maiprof_nb.analysis.memory_search import Matches
from maiprof_nb.analysis.native_names import spoken
from maiprof_nb.session import Session
from maiprof_nb.timebase import NS_PER_US, TimeWindow
from maiprof_widgets import escaping

EMPTY = {
    "sentence": "This session holds no memory data. Record some, in one of two ways, and load "
    "the file together with the trace:",
    "ways": [
        {
            "text": "Every allocation on the GPU with its stack (a memory snapshot):",
            "code": "torch.cuda.memory._record_memory_history(max_entries=1_000_000)\n"
            "...  # the steps to look at\n"
            'torch.cuda.memory._dump_snapshot("memory.pickle")',
        },
        {
            "text": "Totals and sizes inside the trace, also on a machine without a GPU:",
            "code": "with torch.profiler.profile(profile_memory=True) as prof:\n"
            "    ...  # the steps to look at\n"
            'prof.export_chrome_trace("trace.json.gz")',
        },
    ],
}
_NOTHING = {
    "title": "Active memory",
    "notices": [],
    "devices": [],
    "device": 0,
    "axis": "time",
    "axes": "",
    "extent_us": [0.0, 1.0],
}
_FOLDERS = re.compile(r" \([^()]*[/\\]([^/\\()]+:\d+)(?=\)$)")
_NATIVE = re.compile(r"\(\?\?:0\)$|\.(?:c|cc|cpp|cxx|h|hpp|cu|cuh|pyx):\d+\)$|::.*\(|:0\)$")
_MANY, _CROWDED = 100, 0.05  # changes shown; share of the time in which half of them lie
_NAME = 80  # longest name of an operator in a sentence
_X_TITLES = {
    "time": "time from the start of the session",
    "own time": "time since the log's start; its clock is not tied to the session",
    "order": "event number (this log has no times)",
    "state": "one moment: when the snapshot was taken",
}
_AXIS_NOTICES = {
    "own time": "The clock of this log could not be tied to the other recordings: its time axis "
    "is its own and does not follow the other views.",
    "order": "This log has no times, only the order of its events: the axis counts events and "
    "does not follow the other views. PyTorch 2.2 and later record times.",
    "state": "Only the final state was recorded, no log of allocations: this is one moment and "
    "does not follow the other views. To see the way there, record with "
    "_record_memory_history(max_entries=...).",
}


def about_nothing(session: Session) -> dict[str, Any]:
    """What the view says where nothing is known of any memory."""
    empty = next((note.text for _, note in session.notes if note.code == "snapshot-empty"), "")
    sentence = EMPTY["sentence"]
    if empty:
        sentence = f"{empty} Record again, in one of two ways, and load the file with the trace:"
    return _NOTHING | {"empty": EMPTY | {"sentence": sentence}}


def x_title(log: MemoryLog, *, event_axis: bool = False) -> str:
    """Title of the horizontal axis, without its unit."""
    if event_axis:
        return "event number: every change of memory is as wide as the next"
    return _X_TITLES[log.device.axis]


def notices(log: MemoryLog) -> list[str]:
    """What has to be known to read the picture rightly, a sentence each."""
    found = [_AXIS_NOTICES[log.device.axis]] if log.device.axis in _AXIS_NOTICES else []
    start = int(log.allocated_bytes[0])
    if log.device.axis != "state" and log.device.kind == "snapshot" and start > 0:
        found.append(
            f"The log begins with {units.size(start)} already allocated: either recording "
            "began later than the program, or the log was full and lost its oldest events."
        )
    if log.device.kind == "trace":
        found.append(
            "From the trace's memory events: a band is named by the operator it was allocated in."
        )
    if not log.baseline_known:
        found.append("The trace holds no totals: what was allocated before it is not counted.")
    if log.device.kind == "timeline":
        found.append("From the profiler's memory timeline, which names categories and no stacks.")
    if log.pairing_guessed:
        found.append("It holds no addresses either: a free is taken to end the newest of its size.")
    if log.device.device_type == HOST:
        found.append("Host memory that PyTorch's allocator handed out while it was profiled.")
    return found


def rest_text(log: MemoryLog) -> str:
    """What the band at the bottom stands for."""
    if log.device.kind == "trace":
        return "allocated before the recording, or of a stack too small to draw"
    return "of stacks too small to draw even together: zoom in to see them"


def rest_label(log: MemoryLog) -> str:
    """The same for the legend."""
    small = "too small to draw"
    return f"older than the trace, or {small}" if log.device.kind == "trace" else small


def drawn(picture: MemoryPicture) -> str:
    """How much of what lives in the window has a band of its own."""
    parts = [f"{_allocations(len(picture.size_bytes))} drawn one by one"]
    merged = int(picture.merged.allocations.sum())
    if merged:
        bands = len(picture.merged.group)
        parts.append(f"{units.count(merged)} in {bands} merged band{'s' if bands > 1 else ''}")
    if picture.hidden:
        parts.append(
            f"{units.count(picture.hidden)} too brief or small to show "
            f"({units.size(picture.hidden_bytes)} added up): zoom in to see them"
        )
    return "; ".join(parts) + "."


def confidence(share: float) -> str:
    """How sure a reading is."""
    return f"{round(100 * share)} % sure"


def matches(query: str, found: Matches) -> str:
    """What a search found, at the peak and in the time shown."""
    if not found.all_[0]:
        return (
            f"No allocation matches \u201c{query.strip()}\u201d: search by function, file or size."
        )
    count, size = found.in_window
    return (
        f"\u201c{query.strip()}\u201d: {_allocations(found.at_peak[0])} at the peak of the log, "
        f"{units.size(found.at_peak[1])} of its {units.size(found.peak_bytes)}; "
        f"{units.count(count)} live in the time shown, {units.size(size)} added up."
    )


def made_in_window(log: MemoryLog, during: During) -> str:
    """What was made in the time shown, and what of it is still there at its end."""
    if log.device.axis == "state":
        return ""
    count, size, _, kept_size = _counted(log, during)
    made = f"In the time shown: {_allocations(count)} made, {units.size(size)}"
    return (
        f"{made}; {units.size(kept_size)} of them still live at its end." if count else f"{made}."
    )


def crowded(ts_ns: npt.NDArray[np.int64], window: TimeWindow) -> str:
    """Where half of what is shown happens in a moment, what shows it; else empty."""
    at = ts_ns[(ts_ns >= window.start_ns) & (ts_ns < window.end_ns)]
    if len(at) < _MANY:
        return ""
    apart = len(at) // 2 - 1  # the first and the last of half of them
    least_ns = int((at[apart:] - at[: len(at) - apart]).min())
    if least_ns > _CROWDED * window.dur_ns:
        return ""
    return (
        f"Half of the {units.count(len(at))} changes shown lie within {units.duration(least_ns)}: "
        "on the axis by event each is as wide as the next."
    )


def made_during(log: MemoryLog, name: str | None, during: During) -> str:
    """What was made while the chosen thing ran, and what of it lived on."""
    count, size, kept, kept_size = _counted(log, during)
    chosen = "The chosen call" if name is None else escaped_name(name)
    if not count:
        return f"No allocation here was made while {chosen[:1].lower()}{chosen[1:]} ran."
    whose = "it" if name is None else "the call that made them"
    return (
        f"{chosen}: {_allocations(count)} made in it, {units.size(size)}; "
        f"{units.count(kept)} of them ({units.size(kept_size)}) live on after {whose}."
    )


def escaped_name(name: str) -> str:
    """A name from a file, shortened; the browser shows it as text."""
    shown = escaping.visible(name)
    return shown if len(shown) <= _NAME else f"{shown[: _NAME - 1]}\u2026"


def _counted(log: MemoryLog, during: During) -> tuple[int, int, int, int]:
    size = log.allocations["size_bytes"].to_numpy(np.int64)
    made, kept = during.made, during.outlived
    return int(made.sum()), int(size[made].sum()), int(kept.sum()), int(size[kept].sum())


def _allocations(count: int) -> str:
    return f"{units.count(count)} allocation{'' if count == 1 else 's'}"


def moment(log: MemoryLog, us: float) -> str:
    """A place on the view's axis, in words."""
    if log.device.axis == "order":
        return f"event {round(us * NS_PER_US)}"
    return units.duration(us * NS_PER_US)


def peak_text(log: MemoryLog, picture: MemoryPicture) -> str:
    """Label of the peak; empty where the window shows nothing."""
    if np.isnan(picture.peak_bytes):
        return ""
    size = units.size(picture.peak_bytes)
    if log.device.axis == "state":
        return f"peak {size}"
    at = moment(log, picture.window.start_ns / NS_PER_US + picture.peak_us)
    return f"peak {size} at {at}"


def in_words(log: MemoryLog, picture: MemoryPicture) -> str:
    """The picture for those who do not see it."""
    if np.isnan(picture.peak_bytes):
        return "The memory log does not cover the time shown."
    told = f"{log.device.label}: {peak_text(log, picture)}; {drawn(picture)}"
    return f"{told} Arrow keys move, plus and minus zoom, Escape shows everything."


def about(life: pd.Series, category: pd.Series, maker: pd.Series) -> list[str]:
    """Requested size, what for, when and by whom: what is known of them, a line each."""
    lines = []
    asked = _float(life["requested_bytes"])
    if not np.isnan(asked):
        lines.append(
            f"{units.count(asked)} B requested, {units.count(life['size_bytes'])} B as rounded"
        )
    if category["category"] != "unknown":
        sure = confidence(category["confidence"])
        lines.append(f"{category['category']} ({sure}: {category['why']})")
    when = [] if pd.isna(maker["phase"]) else [str(maker["phase"])]
    when += [] if pd.isna(maker["step"]) else [f"step {int(maker['step'])}"]
    lines += [", ".join(when)] if when else []
    return lines + made_by(maker)


def made_by(maker: pd.Series) -> list[str]:
    """The operator that made it and how sure that is; nothing where none is known."""
    if pd.isna(maker["event"]):
        return []
    module = "" if pd.isna(maker["module"]) else f" in {escaped_name(maker['module'])}"
    doubt = ""
    if maker["candidates"] > 1:
        doubt = f" (or another: operators ran on {maker['candidates']} threads)"
    elif maker["clock_unsure"]:
        doubt = " (or one beside it: the two clocks agree only roughly)"
    return [f"made in {escaped_name(maker['operator'])}{module}{doubt}"]


def stack_id(life: pd.Series) -> int:
    """Stack of an allocation; -1 where none was recorded."""
    return -1 if pd.isna(life["stack"]) else int(life["stack"])


def selected(log: MemoryLog, row: int, told: list[str]) -> dict[str, Any]:
    """One allocation and its stack, for the panel."""
    life = log.allocations.iloc[row]
    stack = stack_id(life)
    label = stack_text(log, stack)[0]
    return {
        "row": int(life["allocation"]),
        "stack": stack,
        "heading": f"{units.size(int(life['size_bytes']))} allocated by {label}",
        "facts": "; ".join([_life(log, life), *told, *_same_stack(log, stack)]),
        **_frames(log, stack),
    }


def selected_stack(log: MemoryLog, stack: int) -> dict[str, Any]:
    """One stack, for the panel."""
    facts = "; ".join(_same_stack(log, stack)) or "one allocation of this stack in the log"
    heading = stack_text(log, stack)[0]
    return {"stack": stack, "heading": heading, "facts": facts, **_frames(log, stack)}


def _frames(log: MemoryLog, stack: int) -> dict[str, str]:
    every = stack_text(log, stack)[1]
    told = [text for text in every if not _NATIVE.search(text)] or every
    return {
        "frames": "\n".join(told),
        "all_frames": "" if len(told) == len(every) else "\n".join(every),
    }


def stack_text(log: MemoryLog, stack: int) -> tuple[str, list[str]]:
    """Label and frames (innermost first) of one stack."""
    found = log.stacks[log.stacks["stack"].eq(stack).to_numpy()] if len(log.stacks) else log.stacks
    if found.empty:
        return "a place that was not recorded", []
    row = found.iloc[0]
    return str(row["label"]), str(row["frames"]).splitlines()


def brief_stack(log: MemoryLog, stack: int) -> list[str]:
    """Frames of one stack from its label outwards, without native code."""
    label, frames = stack_text(log, stack)
    start = frames.index(label) if label in frames else 0
    return [text for text in frames[start:] if not _NATIVE.search(text)] or frames


def short(label: str) -> str:
    """A frame without its folders, C++ arguments, or a place that says nothing."""
    return _FOLDERS.sub(r" (\1", spoken(label).removesuffix(" (??:0)"))


def names(log: MemoryLog, stacks: list[int]) -> list[str]:
    """Short names of stacks; those with one label also by the frames that tell them apart.

    ``forward (model.py:47) < main (train.py:9)`` was called by ``main`` and others were not;
    ``forward (model.py:47) > forward (linear.py:125)`` differs in what it called.
    """
    labels = [short(stack_text(log, stack)[0]) for stack in stacks]
    callers = [[short(text) for text in brief_stack(log, stack)] for stack in stacks]
    callees = [_inwards(log, stack) for stack in stacks]
    found = _told_apart(labels, callers, " < ")
    found = _told_apart(found, callees, " > ")
    return _numbered(
        [
            "no stack recorded" if stack < 0 else name
            for stack, name in zip(stacks, found, strict=True)
        ]
    )


def _inwards(log: MemoryLog, stack: int) -> list[str]:
    """Frames of one stack from its label inwards."""
    label, frames = stack_text(log, stack)
    start = frames.index(label) if label in frames else 0
    return [short(text) for text in frames[start::-1]]


def _told_apart(found: list[str], chains: list[list[str]], sign: str) -> list[str]:
    """Names that occur twice, with the frames in which their chains part behind them."""
    told = []
    for name, chain in zip(found, chains, strict=True):
        rivals = [c for c, other in zip(chains, found, strict=True) if other == name]
        depths = sorted({_parting(chain, rival) for rival in rivals if rival != chain})
        frames = [chain[depth] for depth in depths if 0 < depth < len(chain)]
        told.append(sign.join([name, *frames]))
    return told


def _parting(chain: list[str], rival: list[str]) -> int:
    """The first frame, from the inside, in which two chains differ."""
    levels = enumerate(zip_longest(chain, rival, fillvalue=""))
    return next((depth for depth, (one, other) in levels if one != other), len(chain))


def _numbered(found: list[str]) -> list[str]:
    """Names that differ, for stacks that differ in native frames only."""
    seen: Counter[str] = Counter()
    numbered = []
    for name in found:
        seen[name] += 1
        numbered.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return numbered


def _same_stack(log: MemoryLog, stack: int) -> list[str]:
    same = log.allocations[log.allocations["stack"].eq(stack).fillna(value=False).to_numpy(bool)]
    if stack < 0 or len(same) < 2:
        return []
    together = units.size(int(same["size_bytes"].sum()))
    return [f"{units.count(len(same))} allocations of this stack in the log, {together} in all"]


def _life(log: MemoryLog, life: Any) -> str:
    if log.device.axis == "state":
        return "alive when the snapshot was taken"
    start, end = life["ts_ns"] / NS_PER_US, _float(life["end_ns"]) / NS_PER_US
    begun = "made before the log" if life["before_log"] else f"made at {moment(log, start)}"
    if np.isnan(end):
        return f"{begun}, still alive at the end of the log"
    return f"{begun}, freed at {moment(log, end)}"


def _float(value: Any) -> float:
    try:
        return float(value)
    except TypeError:  # pandas' missing value
        return float("nan")
