"""Rows of evidence the rules on memory share."""

from __future__ import annotations

from typing import Any

import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis.active_memory import MemoryLog
from maiprof_nb.analysis.native_names import spoken
from maiprof_nb.session import Session

_LONGEST = 90  # characters
_NO_STACK = "no stack recorded"
_NO_SNAPSHOT = (
    "No memory snapshot was loaded. Call torch.cuda.memory._record_memory_history() at the start "
    "and torch.cuda.memory._dump_snapshot() at the end."
)


_EMPTY = (
    "The memory snapshot is empty: recording was not on, or this process used no GPU. Call "
    "torch.cuda.memory._record_memory_history() before the model is built, and dump in the process "
    "that uses the GPU."
)


def no_snapshot(session: Session) -> str:
    """Why nothing can be said of an allocator: there is no snapshot, or an empty one."""
    return _EMPTY if "snapshot-empty" in {note.code for _, note in session.notes} else _NO_SNAPSHOT


def live_rows(log: MemoryLog, state: int, count: int = 5) -> list[dict[str, Any]]:
    """Who holds most in one state of a log, as rows of `allocations`."""
    lives = log.allocations
    living = lives[(lives["first_state"] <= state) & (lives["end_state"] > state)]
    by_stack = living.groupby("stack", dropna=False).agg(
        allocation=("allocation", "min"), size_bytes=("size_bytes", "sum"), blocks=("stack", "size")
    )
    label = log.stacks.set_index("stack")["label"].astype(object).to_dict()
    return [
        {
            "table": "allocations",
            "recording": log.device.recording,
            "device": log.device.device,
            "allocation": int(row["allocation"]),
            "line": _NO_STACK if pd.isna(row["stack"]) else str(label[int(row["stack"])]),
            "size_bytes": int(row["size_bytes"]),
            "blocks": int(row["blocks"]),
        }
        for row in by_stack.reset_index().nlargest(count, "size_bytes").to_dict("records")
    ]


def holder_rows(log: MemoryLog, holders: pd.DataFrame, count: int = 5) -> list[dict[str, Any]]:
    """The stacks whose blocks lie beside most free bytes."""
    return [
        {
            "table": "stacks",
            "recording": log.device.recording,
            "device": log.device.device,
            "stack": None if pd.isna(row["stack"]) else int(row["stack"]),
            "line": str(row["label"]),
            "held_bytes": int(row["held_bytes"]),
            "blocks": int(row["blocks"]),
            "block_bytes": int(row["block_bytes"]),
        }
        for row in holders.head(count).to_dict("records")
    ]


def named(label: object) -> str:
    """A stack's label, short enough for a sentence: those of C++ spell out their templates."""
    text = spoken(str(label)).removesuffix(" (??:0)")
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def on(session: Session, log: MemoryLog) -> str:
    """`` on rank 0, GPU 1`` where there is more than one device to speak of."""
    several = len(session.recordings) > 1 or log.device.device > 0 or log.device.rank is not None
    return f" on {log.device.label}" if several else ""


def size_a_cycle(size_bytes: float) -> str:
    """Bytes as text, with a sign where they are fewer."""
    return f"{'-' if size_bytes < 0 else ''}{units.size(abs(size_bytes))}"
