"""CUDA memory snapshots: pickles of ``torch.cuda.memory._dump_snapshot`` and its relatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.errors import LoadError, MaiprofError
from maiprof_nb.loading import _allocator_log, _allocator_state
from maiprof_nb.loading._allocation_lives import Lives, lives
from maiprof_nb.loading._garbage import garbage_left
from maiprof_nb.loading._snapshot_annotations import named_ranges
from maiprof_nb.loading.stacks import StackIds
from maiprof_nb.loading.unpickling import plain_data
from maiprof_nb.recording import Note, Recording

NAME = "cuda-memory-snapshot"

_PROTOCOLS = tuple(bytes([0x80, protocol]) for protocol in range(2, 6))
_OLD_STARTS = (b"(dp", b"(lp", b"}q\x00", b"]q\x00")  # protocols 0 and 1 have no mark
_ODD_FIELDS = (
    TypeError, ValueError, KeyError, AttributeError, OverflowError, RecursionError, MaiprofError,
)  # fmt: skip
_MOST_BYTES = 2**62  # of all events, added up: a million of 4 TiB
_FIRST_ROWS = 1000  # a profile's allocs each state a category
_WITHOUT_ALLOCS = Note(
    "allocs-missing",
    "The log has frees and no allocs (skip_actions): what lived when is not in it.",
)
_FROM_A_PROFILE = Note(
    "made-of-a-profile",
    "The snapshot was made of a profile (_profile_to_snapshot): it has no times and no segments, "
    "and its last device is the host.",
)
_REMEDY = "Give the file that torch.cuda.memory._dump_snapshot wrote"


def sniff(data: bytes) -> bool:
    """True for any Python pickle; `read` refuses those that hold something else."""
    return data.startswith(_PROTOCOLS) or (data.startswith(_OLD_STARTS) and data.endswith(b"."))


def read(data: bytes, source: str) -> Recording:
    """Read a memory snapshot.

    Sizes in the log are as requested; the table `allocations` has them as the allocator's rules
    give them. Only a large block from before the log, or one behind which nothing lay while it
    lived, may have been up to 1 MiB larger than that.

    Raises
    ------
    LoadError
        If the pickle names code, is damaged, or is not a memory snapshot.
    """
    with garbage_left():
        return _read(data, source)


def _read(data: bytes, source: str) -> Recording:
    content = _layout(plain_data(data, source), source)
    _refuse_multiplied(content, len(data), source)
    try:
        return _recording(content, source)
    except _ODD_FIELDS as problem:
        raise _refusal(source, f"a field is not as PyTorch writes it: {problem}") from problem


def _layout(content: Any, source: str) -> dict[str, Any]:
    """The snapshot as a dict; a bare list of segments is one too."""
    if isinstance(content, list):
        content = {"segments": content}
    if not isinstance(content, dict):
        raise _refusal(source, f"it holds a {type(content).__name__}")
    if not {"segments", "device_traces"} & set(content):
        names = [key[:40] for key in content if isinstance(key, str)][:5]
        raise _refusal(source, f"it is a dict of {', '.join(names) or 'nothing known'}")
    for key in ("segments", "device_traces", "external_annotations"):
        if not isinstance(content.setdefault(key, []), list):
            raise _refusal(source, f"its {key} are no list")
    if not all(isinstance(row, dict) and "blocks" in row for row in content["segments"]):
        raise _refusal(source, "its segments have no blocks")
    if not all(isinstance(trace, list) for trace in content["device_traces"]):
        raise _refusal(source, "its device_traces are no lists")
    return content


def _refuse_multiplied(content: dict[str, Any], written_bytes: int, source: str) -> None:
    """A row takes some bytes of the file, unless one list stands in many places of it."""
    held = [segment["blocks"] for segment in content["segments"]] + content["device_traces"]
    rows = sum(len(found) for found in held if isinstance(found, list | tuple))
    if rows > written_bytes:
        raise _refusal(source, f"it multiplies itself to {rows:,} rows")


def _refuse_absurd(size_bytes: npt.NDArray[np.int64]) -> None:
    """Sizes that no device has, and that cannot be added up."""
    if size_bytes.min(initial=0) < 0:
        raise ValueError(f"a size of {size_bytes.min()} bytes")
    if size_bytes.sum(dtype=np.float64) >= _MOST_BYTES:
        raise ValueError(f"sizes up to {size_bytes.max()} bytes")


def _is_of_a_profile(content: dict[str, Any]) -> bool:
    """Made by ``torch.cuda._memory_viz._profile_to_snapshot``, not by an allocator."""
    segments = content["segments"]
    rows: list[Any] = next((trace for trace in content["device_traces"] if trace), [])
    return not any("segment_type" in segment for segment in segments) and any(
        isinstance(row, dict) and "category" in row for row in rows[:_FIRST_ROWS]
    )


def _refusal(source: str, detail: str) -> LoadError:
    return LoadError(
        f"the pickle is not a CUDA memory snapshot ({detail})", where=source, remedy=_REMEDY
    )


def _recording(content: dict[str, Any], source: str) -> Recording:
    settings = content.get("allocator_settings")
    settings = settings if isinstance(settings, dict) else {}
    traces = _allocator_log.usable(content["device_traces"])
    dropped = sum(map(len, content["device_traces"])) - sum(map(len, traces))
    clock, zero_us = _allocator_log.clock(traces)
    ids = StackIds()
    events = _allocator_log.events(traces, zero_us, ids)
    segments = _allocator_state.segments(content["segments"])
    blocks = _allocator_state.blocks(content["segments"], ids)
    for table in (events, segments, blocks):
        _refuse_absurd(table["size_bytes"].to_numpy(np.int64))
    profiled = _is_of_a_profile(content)
    if profiled:  # one stretch of addresses a device, which nothing was taken in
        segments, blocks = segments.iloc[:0], blocks[blocks["state"].ne("inactive").to_numpy()]
    found = lives(events, blocks, segments, None if profiled else settings)
    tables = {
        "segments": segments,
        "blocks": blocks,
        "allocator_events": events,
        "allocations": found.table,
        "stacks": ids.table(),
    }
    notes = _notes(events, blocks, found, dropped)
    meta = _meta(content, settings, blocks, events)
    if profiled:
        meta["host_device"] = len(content["device_traces"]) - 1
        notes.append(_FROM_A_PROFILE)
    if content["external_annotations"] and zero_us is not None:
        tables["allocator_ranges"], more = named_ranges(content["external_annotations"], zero_us)
        notes += more
    return Recording(
        source=source,
        kind="snapshot",
        format=NAME,
        tables=tables,
        clock=clock,
        notes=tuple(notes),
        events={str(name): int(n) for name, n in events["action"].value_counts(sort=False).items()},
        meta=meta,
    )


def _meta(
    content: dict[str, Any],
    settings: dict[str, Any],
    blocks: pd.DataFrame,
    events: pd.DataFrame,
) -> dict[str, Any]:
    used = events["device"].unique()
    meta: dict[str, Any] = {
        "devices": sorted({*blocks["device"].unique().tolist(), *used.tolist()}),
        "visible_devices": len(content["device_traces"]),
        "allocator_settings": settings,
    }
    if "simulated" in content:
        meta["simulated"] = content["simulated"]
    return meta


def _notes(events: pd.DataFrame, blocks: pd.DataFrame, found: Lives, dropped: int) -> list[Note]:
    notes = []
    before = found.frees_of_unseen + found.blocks_of_unseen
    if events.empty and blocks.empty:
        text = "The snapshot is empty: memory recording was not on, or nothing used the GPU."
        notes.append(Note("snapshot-empty", text))
    elif events.empty:
        text = "The snapshot holds the final state only; the allocator's log was not recorded."
        notes.append(Note("log-empty", text))
    elif before:
        text = (
            f"The log begins late: {before} allocations were made before it "
            f"({found.frees_of_unseen} freed in it, {found.blocks_of_unseen} alive at its end)."
        )
        notes.append(Note("log-begins-late", text, before))
    faults = (
        ("events-dropped", dropped, "events without an action were left out"),
        ("frees-unmatched", found.unmatched_frees, "frees of addresses already free were ignored"),
        (
            "allocs-replaced",
            found.replaced,
            "allocs took an address still in use; the one before was taken to end there",
        ),
        (
            "state-after-log",
            found.after_log,
            "allocations were made or freed between the log's end and the final state",
        ),
    )
    notes += [Note(code, f"{n} {text}.", n) for code, n, text in faults if n]
    if found.unmatched_frees and not events["action"].eq("alloc").any():
        notes.append(_WITHOUT_ALLOCS)
    return notes
