"""What the allocator holds of a device at the end of its log, and what of it is of use."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from maiprof_nb.analysis.active_memory import MemoryDevice
from maiprof_nb.session import Session


@dataclass(frozen=True)
class HeldMemory:
    """The final state of one device's segments.

    Parameters
    ----------
    reserved_bytes, allocated_bytes : int
        In segments; of it in live blocks (waiting to be freed included).
    cached_bytes, cached_segments : int
        In segments without any live block: ``empty_cache`` would give them back.
    stranded_bytes, holes : int
        Free in segments that also hold live blocks, and the number of such free blocks. They
        serve smaller requests of the same stream and pool only.
    largest_hole_bytes : int
        The largest of those holes: the largest request they could serve.
    largest_free_bytes : int
        The largest free block of all, wholly free segments included.
    expandable : bool
        True if any segment grows in place.
    segments : DataFrame
        ``segment, size_bytes, allocated_bytes, stranded_bytes, blocks, stack`` of the segments
        with holes, most stranded first; ``stack`` is the label of the largest live block.
    """

    reserved_bytes: int
    allocated_bytes: int
    cached_bytes: int
    cached_segments: int
    stranded_bytes: int
    holes: int
    largest_hole_bytes: int
    largest_free_bytes: int
    expandable: bool
    segments: pd.DataFrame

    @property
    def unused_share(self) -> float:
        """Part of what is reserved that no live block uses, 0 to 1."""
        return 1 - self.allocated_bytes / self.reserved_bytes if self.reserved_bytes else 0.0


def held_memory(session: Session, device: MemoryDevice) -> HeldMemory | None:
    """The final state of a snapshot's device; None where it holds no segment.

    Read from the snapshot's own blocks, not followed through the log as `allocator_state` does
    for any moment: so it is right where the log is missing, cut or contradicts the blocks.
    """
    recording = session.recordings[device.recording]
    segments = recording.table("segments")
    segments = segments[segments["device"] == device.device]
    if segments.empty:
        return None
    blocks = recording.table("blocks")
    blocks = blocks[blocks["segment"].isin(segments["segment"])]
    free = blocks["state"].eq("inactive").to_numpy(bool)
    used = blocks[~free].groupby("segment")["size_bytes"].agg(["sum", "size"])
    of = segments.set_index("segment")
    live = used["sum"].reindex(of.index).fillna(0).astype("int64")
    cached = of[live == 0]
    holes = blocks[free & ~blocks["segment"].isin(cached.index).to_numpy(bool)]
    stranded = holes.groupby("segment")["size_bytes"].sum()
    torn = of.loc[stranded.index]
    table = pd.DataFrame(
        {
            "segment": stranded.index,
            "size_bytes": torn["size_bytes"].to_numpy(),
            "allocated_bytes": live.loc[stranded.index].to_numpy(),
            "stranded_bytes": stranded.to_numpy(),
            "blocks": used["size"].loc[stranded.index].to_numpy(),
            "stack": _largest_label(blocks[~free], recording.table("stacks"), stranded.index),
        }
    ).sort_values("stranded_bytes", ascending=False, kind="stable", ignore_index=True)
    return HeldMemory(
        reserved_bytes=int(of["size_bytes"].sum()),
        allocated_bytes=int(live.sum()),
        cached_bytes=int(cached["size_bytes"].sum()),
        cached_segments=len(cached),
        stranded_bytes=int(stranded.sum()),
        holes=len(holes),
        largest_hole_bytes=_largest(holes),
        largest_free_bytes=_largest(blocks[free]),
        expandable=bool(of["expandable"].any()),
        segments=table,
    )


def _largest(blocks: pd.DataFrame) -> int:
    return int(blocks["size_bytes"].max()) if len(blocks) else 0


def _largest_label(live: pd.DataFrame, stacks: pd.DataFrame, segments: pd.Index) -> list[str]:
    largest = live.sort_values("size_bytes", ascending=False).drop_duplicates("segment")
    stack = largest.set_index("segment")["stack"].reindex(segments)
    label = stacks.set_index("stack")["label"].astype(object)
    return stack.map(label).astype(object).fillna("no stack recorded").tolist()
