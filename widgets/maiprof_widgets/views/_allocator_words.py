"""What the view of the allocator's segments says in words."""

from __future__ import annotations

from typing import Any

import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis.active_memory import MemoryLog
from maiprof_nb.analysis.allocator_state import AllocatorHistory
from maiprof_nb.analysis.device_size import DeviceSize
from maiprof_nb.analysis.fragmentation import Room
from maiprof_nb.analysis.segment_picture import SegmentPicture
from maiprof_widgets.views import _memory_words as memory_words

MOST_HOLDERS = 5
_TIP_FRAMES = 6
_DEFAULT_POOL = "(0, 0)"

EMPTY = {
    "sentence": "This session holds no memory snapshot with segments, so the allocator's state "
    "is not known. Record one on the GPU:",
    "ways": [
        {
            "text": "Every allocation with its stack, and the segments they lie in:",
            "code": "torch.cuda.memory._record_memory_history(max_entries=1_000_000)\n"
            "...  # the steps to look at\n"
            'torch.cuda.memory._dump_snapshot("memory.pickle")',
        }
    ],
}
_ACTIONS = {
    "alloc": "{size} allocated by {by}",
    "free_requested": "free of {size} asked for",
    "free_completed": "{size} freed",
    "segment_alloc": "a segment of {size} taken from the GPU, for {by}",
    "segment_free": "a segment of {size} given back to the GPU",
    "segment_map": "{size} mapped into an expandable segment",
    "segment_unmap": "{size} of an expandable segment given back",
    "snapshot": "a snapshot was taken",
    "oom": "out of memory: {size} asked for by {by}",
}


def time_text(history: AllocatorHistory, state: int) -> str:
    """When a state begins; empty for a log without times."""
    if history.device.axis not in ("time", "own time"):
        return ""
    return units.duration(float(history.ts_ns[state]))


def moment(history: AllocatorHistory, log: MemoryLog, state: int) -> str:
    """Which state is shown, and the event that made it."""
    last = history.last_state
    if not last or history.device.axis == "state":
        return "The final state: this snapshot holds no log of events."
    if state == 0:
        return f"Before the first of {units.count(last)} events."
    row = history.events.iloc[state - 1]
    size = (
        units.size(float(row["size_bytes"])) if pd.notna(row["size_bytes"]) else "an unknown size"
    )
    text = _ACTIONS.get(str(row["action"]), f"{row['action']} of {{size}}")
    said = text.format(size=size, by=label(log, row["stack"]))
    at = time_text(history, state)
    when = f", at {at}" if at else ""
    return f"After event {units.count(state)} of {units.count(last)}{when}: {said}."


def label(log: MemoryLog, stack: Any) -> str:
    """A stack's own line, short."""
    number = -1 if pd.isna(stack) else int(stack)
    return memory_words.short(memory_words.stack_text(log, number)[0])


def group_title(row: Any) -> str:
    """One stream's part of a pool."""
    private = "" if row.pool_id in (_DEFAULT_POOL, None) else f" of private pool {row.pool_id}"
    kind = "expandable segments, " if row.expandable else ""
    many = f"{units.count(row.segments)} segment{'s' if row.segments != 1 else ''}"
    scale = f"a row is {units.size(row.row_bytes)}"
    shown = f"one segment a row, {scale}" if row.one_per_row else scale
    return (
        f"{row.pool} pool{private}, {kind}stream {row.stream}: {many}, "
        f"{units.size(row.reserved_bytes)}, of it {units.size(row.unused_bytes)} unused "
        f"({shown})"
    )


def figures(found: Room, pending_bytes: int, device: DeviceSize | None) -> list[list[str]]:
    """Name, figure and meaning of what the moment shows."""
    reserved = found.reserved_bytes
    waits = f"; {units.size(pending_bytes)} of it waits to be freed" if pending_bytes else ""
    beyond = "or more, by what the GPU itself has left"
    if device is not None:
        left = units.size(max(device.size_bytes - reserved, 0))
        beyond = f"with the {left} that the GPU has left of {units.size(device.size_bytes)}"
    share = units.percent(found.unused_bytes / reserved) if reserved else "none"
    return [
        ["reserved", units.size(reserved), f"in {units.count(found.segments)} segments"],
        ["allocated", units.size(found.allocated_bytes), f"in blocks{waits}"],
        ["unused", units.size(found.unused_bytes), f"{share} of what is reserved"],
        [
            "would go back",
            units.size(found.returnable_bytes),
            f"by empty_cache(); {units.count(found.free_segments)} segments are wholly free",
        ],
        [
            "stranded",
            units.size(found.stranded_bytes),
            f"in {units.count(found.holes)} holes beside blocks in use",
        ],
        ["largest request now", units.size(found.fits_bytes), "without new memory from the GPU"],
        ["after empty_cache()", units.size(found.fits_after_release_bytes), beyond],
        ["if defragmented", units.size(found.fits_defragmented_bytes), beyond],
    ]


def in_words(found: Room, picture: SegmentPicture) -> str:
    """The picture for those who do not see it."""
    return (
        f"{units.count(found.segments)} segments, {units.size(found.reserved_bytes)} reserved, "
        f"{units.size(found.allocated_bytes)} allocated, {units.size(found.stranded_bytes)} in "
        f"{units.count(found.holes)} holes; {units.count(len(picture.kind))} pieces drawn. "
        "Left and right arrow: previous and next event; Home and End: first and last."
    )


def segment_title(picture: SegmentPicture, *, chosen: bool) -> str:
    """The one segment that is drawn large."""
    row = picture.groups.iloc[0]
    which = "Segment" if chosen else "The segment with most stranded memory,"
    return (
        f"{which} at {int(picture.address[0]):#x}: {units.size(picture.segment_bytes[0])}, "
        f"{row['pool']} pool, stream {row['stream']}, "
        f"{units.size(picture.unused_bytes[0])} unused"
    )


def block_tip(history: AllocatorHistory, log: MemoryLog, block: int) -> dict[str, Any]:
    """One block: sizes, life and stack."""
    row = history.blocks.iloc[block]
    size, asked = int(row["size_bytes"]), int(row["requested_bytes"])
    stack = -1 if pd.isna(row["stack"]) else int(row["stack"])
    frames = [memory_words.short(text) for text in memory_words.brief_stack(log, stack)]
    more = len(frames) - _TIP_FRAMES
    return {
        "heading": units.size(size),
        "facts": [
            f"{units.count(asked)} B requested, {units.count(size)} B taken"
            if asked != size
            else f"{units.count(size)} B, as requested",
            f"at {int(row['address']):#x}, stream {row['stream']}",
            lifetime(history, block),
        ],
        "frames": "\n".join(frames[:_TIP_FRAMES] + ([f"... {more} more"] if more > 0 else [])),
    }


def lifetime(history: AllocatorHistory, block: int) -> str:
    """Since when and until when a block was in use."""
    row = history.blocks.iloc[block]
    first, end = int(row["first_state"]), int(row["end_state"])
    if history.device.axis == "state":
        return "alive when the snapshot was taken"
    since = "from before the log" if first == 0 else f"since {_event(history, first)}"
    if end > history.last_state:
        return f"{since}, alive at the end of the log"
    if row["pending_state"] < end:
        asked = _event(history, int(row["pending_state"]))
        return f"{since}; its free was asked for at {asked}, done at {_event(history, end)}"
    return f"{since}, until {_event(history, end)}"


def _event(history: AllocatorHistory, state: int) -> str:
    at = time_text(history, state)
    return f"event {units.count(state)}" + (f" ({at})" if at else "")


def chosen_block(history: AllocatorHistory, log: MemoryLog, block: int, state: int) -> str:
    """The chosen allocation, and whether it is to be seen."""
    row = history.blocks.iloc[block]
    alive = row["first_state"] <= state < row["end_state"]
    absent = "" if alive else " It does not live at the moment shown."
    return (
        f"Chosen: {units.size(int(row['size_bytes']))} of {label(log, row['stack'])}, "
        f"{lifetime(history, block)}.{absent}"
    )


def chosen_stack(log: MemoryLog, stack: int, blocks: int, size_bytes: int) -> str:
    """The chosen stack, and what of it lives at the moment shown."""
    many = f"{units.count(blocks)} block{'s' if blocks != 1 else ''}"
    return f"Chosen: {label(log, stack)}: {many}, {units.size(size_bytes)} at the moment shown."


def holders(found: pd.DataFrame, log: MemoryLog, stranded_bytes: int) -> list[dict[str, Any]]:
    """Whose blocks lie beside holes, most held first."""
    rows = found.head(MOST_HOLDERS)
    stacks = rows["stack"].fillna(-1).astype("int64").tolist()
    return [
        {
            "stack": stack,
            "label": name,
            "held": units.size(row.held_bytes),
            "share": units.percent(row.held_bytes / stranded_bytes) if stranded_bytes else "",
            "blocks": f"{units.count(row.blocks)} block{'s' if row.blocks != 1 else ''} of "
            f"{units.size(row.block_bytes)} in all",
        }
        for stack, name, row in zip(
            stacks, memory_words.names(log, stacks), rows.itertuples(), strict=True
        )
    ]
