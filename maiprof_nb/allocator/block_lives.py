"""Lives of blocks, from the allocator's log and the state it ends in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from maiprof_nb.allocator.lives import Bools, Ints, Lives, doing, lives
from maiprof_nb.allocator.places import Places
from maiprof_nb.allocator.rules import (
    SMALL_REQUEST_LIMIT,
    UNSPLIT_ROUNDING,
    AllocatorSettings,
    rounded_all,
)
from maiprof_nb.allocator.segment_lives import segment_lives


@dataclass(frozen=True)
class BlockLives:
    """Lives of one device's blocks, and what did not fit together while they were found.

    Parameters
    ----------
    table : DataFrame
        One row a life: ``address, size_bytes, requested_bytes, stream, stack``, the events that
        made it, asked for its free and ended it (``opened, asked, closed``, positions in the
        device's log), its row in the blocks in use at the end (``kept``), and the states in
        which it lives, ``first_state <= k < end_state``. -1 = there is none.
    unmatched_frees, replaced : int
        Frees of an address that was free already; allocs at an address still in use.
    """

    table: pd.DataFrame
    unmatched_frees: int
    replaced: int


def block_lives(
    events: pd.DataFrame,
    blocks: pd.DataFrame,
    segments: pd.DataFrame,
    settings: AllocatorSettings | None,
    *,
    final_known: bool = True,
) -> BlockLives:
    """Pair every alloc with the completed free of its address, and both with the final state.

    Parameters
    ----------
    events, blocks, segments : DataFrame
        One device's part of the tables `allocator_events`, `blocks` and `segments`.
    settings : AllocatorSettings, optional
        As the snapshot states them; None where no allocator's rules apply, and a block is as
        large as was asked for.
    final_known : bool
        False if the snapshot has a log only.

    Notes
    -----
    A log that leaves out completed frees (``skip_actions``) ends lives where they were asked to.
    """
    free = "free_completed" if doing(events, "free_completed").any() else "free_requested"
    alloc = doing(events, "alloc")
    position = np.flatnonzero(alloc | doing(events, free))
    address = events["address"].to_numpy(np.int64, na_value=0)
    used = blocks[blocks["state"].ne("inactive").to_numpy()]
    found = lives(
        address[position],
        position,
        alloc[position],
        used["address"].to_numpy(np.int64),
        len(events),
        final_known=final_known,
    )
    places = np.append(position, -1)
    opened, closed = places[found.opened], places[found.closed]
    waits = np.append(used["state"].eq("pending_free").to_numpy(bool), False)[found.kept]
    table = _described(events, used, segments, found, opened, closed)
    table["asked"] = -1
    if free == "free_completed":
        ended = (closed >= 0) | waits
        until = np.where(closed >= 0, closed, len(events))
        table["asked"] = _asked(
            address, doing(events, "free_requested"), opened, until, ended, found
        )
    exact = found.kept >= 0
    pieces = segment_lives(events, segments)
    table["size_bytes"] = _sizes(table, exact, pieces, settings, len(events))
    return BlockLives(table, found.unmatched, found.replaced)


def _described(
    events: pd.DataFrame,
    used: pd.DataFrame,
    segments: pd.DataFrame,
    found: Lives,
    opened: Ints,
    closed: Ints,
) -> pd.DataFrame:
    source = np.where(opened >= 0, opened, closed)
    logged, kept = source >= 0, found.kept >= 0
    stream_of = segments.set_index("segment")["stream"]
    final: dict[str, Any] = {
        "size_bytes": used["size_bytes"],
        "requested_bytes": used["requested_bytes"].fillna(-1),
        "stream": used["segment"].map(stream_of).fillna(0),
        "stack": used["stack"].fillna(-1),
    }
    at_end = {
        name: np.append(values.to_numpy(np.int64), -1)[found.kept] for name, values in final.items()
    }

    def said(column: str) -> Ints:
        values = np.append(events[column].to_numpy(np.int64, na_value=-1), -1)
        return np.where(logged, values[source], at_end[column])

    stack = np.where(opened >= 0, said("stack"), -1)  # that of a free says not who allocated
    return pd.DataFrame(
        {
            "address": found.address,
            "size_bytes": np.where(kept, at_end["size_bytes"], -1),
            "requested_bytes": np.where(
                logged,
                np.append(events["size_bytes"].to_numpy(np.int64), -1)[source],
                at_end["requested_bytes"],
            ),
            "stream": said("stream"),
            "stack": np.where((stack < 0) & kept, at_end["stack"], stack),
            "opened": opened,
            "closed": closed,
            "kept": found.kept,
            "first_state": found.first_state,
            "end_state": found.end_state,
        }
    )


def _asked(
    address: Ints, requests: Bools, opened: Ints, until: Ints, ended: Bools, found: Lives
) -> Ints:
    """Where the free that ended each life was asked for: the last request before its end."""
    asked = np.full(len(until), -1, dtype=np.int64)
    row = np.flatnonzero(ended)
    before = np.maximum(until[row] - 1, 0)
    beside = requests[before] & (address[before] == found.address[row])  # as a rule
    asked[row[beside]] = before[beside]
    row = row[~beside]
    place = np.flatnonzero(requests)
    if not len(row) or not len(place):
        return asked
    codes = pd.factorize(np.concatenate([found.address[row], address[place]]))[0]
    span = len(address) + 1
    key = codes[len(row) :] * span + place
    order = np.argsort(key)
    at = np.searchsorted(key[order], codes[: len(row)] * span + until[row]) - 1
    last = order[np.maximum(at, 0)]
    fits = (at >= 0) & (codes[len(row) :][last] == codes[: len(row)]) & (place[last] > opened[row])
    asked[row[fits]] = place[last[fits]]
    return asked


def _sizes(
    table: pd.DataFrame,
    exact: Bools,
    pieces: pd.DataFrame,
    settings: AllocatorSettings | None,
    ends: int,
) -> Ints:
    """Sizes of blocks as they were, also where a large block was taken without a split.

    Free blocks among the large ones are never as small as what is not split off. So a block
    ends at the next border behind its rounded request, if one is that near while it lives.
    """
    asked = table["requested_bytes"].to_numpy(np.int64)
    least = np.maximum(asked, 0)
    if settings is not None:
        least = rounded_all(least, settings)
    size = np.where(exact, table["size_bytes"].to_numpy(np.int64), least)
    if settings is None:
        return size
    large = ~exact & (least > SMALL_REQUEST_LIMIT)
    if settings.expandable or not large.any() or not len(pieces):
        return size
    sized = table.assign(size_bytes=size)
    places = Places(sized, ends)
    row = np.flatnonzero(large)
    piece = Places(pieces, ends).holding(sized.iloc[row])
    fixed = (piece >= 0) & ~pieces["expandable"].to_numpy(bool)[piece]
    row, piece = row[fixed], piece[fixed]
    slack = np.full(len(row), SMALL_REQUEST_LIMIT)
    if settings.max_split_bytes is not None:
        slack[least[row] >= settings.max_split_bytes] = UNSPLIT_ROUNDING
    segment_end = (pieces["address"] + pieces["size_bytes"]).to_numpy(np.int64)[piece]
    border = np.minimum(segment_end, places.next_beside(sized.iloc[row], least[row]))
    left = border - sized["address"].to_numpy(np.int64)[row] - least[row]
    near = (left > 0) & (left <= slack)
    size[row[near]] += left[near]
    return size
