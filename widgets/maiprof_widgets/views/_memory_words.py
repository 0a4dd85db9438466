"""What the memory view says in words."""

from __future__ import annotations

import re
from collections import Counter
from itertools import zip_longest
from typing import Any

import numpy as np

from maiprof_nb import units
from maiprof_nb.analysis.active_memory import HOST, MemoryLog, MemoryPicture
from maiprof_nb.timebase import NS_PER_US

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
_FOLDERS = re.compile(r" \([^()]*[/\\]([^/\\()]+:\d+)(?=\)$)")
_NATIVE = re.compile(r"\(\?\?:0\)$|\.(?:c|cc|cpp|cxx|h|hpp|cu|cuh|pyx):\d+\)$|::.*\(|:0\)$")
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


def x_title(log: MemoryLog) -> str:
    """Title of the horizontal axis, without its unit."""
    return _X_TITLES[log.device.axis]


def notices(log: MemoryLog) -> list[str]:
    """What has to be known to read the picture rightly, a sentence each."""
    found = [_AXIS_NOTICES[log.device.axis]] if log.device.axis in _AXIS_NOTICES else []
    start = int(log.allocated_bytes[0])
    if log.device.axis != "state" and log.device.kind == "snapshot" and start > 0:
        found.append(
            f"The log begins with {units.size(start)} already allocated (grey): either recording "
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
        return "allocations too small to draw here, and what was allocated before the recording"
    return "allocations too small to draw at this zoom: zoom in to see them"


def rest_label(log: MemoryLog) -> str:
    """The same for the legend."""
    return (
        "too small to draw, or older than the trace"
        if log.device.kind == "trace"
        else ("too small to draw here")
    )


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
    shown = len(picture.size_bytes)
    text = f"{log.device.label}: {peak_text(log, picture)}; {units.count(shown)} allocations drawn"
    more = f", {units.count(picture.hidden)} more are too short or small to show at this zoom"
    hidden = more if picture.hidden else ""
    return f"{text}{hidden}. Arrow keys move, plus and minus zoom, Escape shows everything."


def selected(log: MemoryLog, row: int) -> dict[str, Any]:
    """One allocation and its stack, for the panel; empty if the log has no such row."""
    found = log.allocations[log.allocations["allocation"].eq(row).to_numpy()]
    if found.empty:
        return {}
    life = found.iloc[0]
    stack = -1 if life["stack"] is None or np.isnan(_float(life["stack"])) else int(life["stack"])
    label = stack_text(log, stack)[0]
    return {
        "row": row,
        "stack": stack,
        "heading": f"{units.size(int(life['size_bytes']))} allocated by {label}",
        "facts": "; ".join(_facts(log, life, stack)),
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
    """A frame without the folders of its file, or without a place that says nothing."""
    return _FOLDERS.sub(r" (\1", label.removesuffix(" (??:0)"))


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


def _facts(log: MemoryLog, life: Any, stack: int) -> list[str]:
    facts = []
    asked = _float(life["requested_bytes"])
    if not np.isnan(asked) and asked != life["size_bytes"]:
        facts.append(f"{units.count(asked)} B requested, {units.count(life['size_bytes'])} B taken")
    facts.append(_life(log, life))
    return facts + _same_stack(log, stack)


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
