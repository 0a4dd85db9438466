"""Named ranges inside a memory snapshot (`external_annotations`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pandas as pd

from maiprof_nb.recording import Note
from maiprof_nb.tables import SCHEMAS
from maiprof_nb.timebase import NS_PER_US


def named_ranges(rows: Sequence[Any], zero_us: int) -> tuple[pd.DataFrame, list[Note]]:
    """The table `allocator_ranges`, each END closing the latest open START of its name and device.

    Parameters
    ----------
    rows : sequence
        The snapshot's `external_annotations`.
    zero_us : int
        Epoch microseconds of the recording's time zero.
    """
    open_starts: dict[tuple[Any, Any], list[tuple[int, int]]] = defaultdict(list)
    ranges: list[tuple[int, str, int, int, Any]] = []
    unpaired = 0
    for position, row in enumerate(rows):
        if not isinstance(row, dict) or not isinstance(row.get("time_us"), int):
            unpaired += 1
            continue
        name, time_us = row.get("name"), row["time_us"]
        name = name if isinstance(name, str) else "?"
        device = row.get("device")
        device = device if isinstance(device, int) else None
        starts = open_starts[name, device]
        if row.get("stage") == "START":
            starts.append((position, time_us))
        elif starts:
            event, start_us = starts.pop()
            ranges.append((event, name, start_us, max(time_us - start_us, 0), device))
        else:
            unpaired += 1
    unpaired += sum(len(starts) for starts in open_starts.values())
    ranges.sort(key=lambda found: found[0])
    table = SCHEMAS["allocator_ranges"].frame(
        {
            "event": [event for event, *_ in ranges],
            "name": [name for _, name, *_ in ranges],
            "ts_ns": [(start_us - zero_us) * NS_PER_US for _, _, start_us, *_ in ranges],
            "dur_ns": [dur_us * NS_PER_US for *_, dur_us, _ in ranges],
            "device": [device if isinstance(device, int) else pd.NA for *_, device in ranges],
        }
    )
    if not unpaired:
        return table, []
    text = f"{unpaired} starts or ends of named ranges have no counterpart and were left out."
    return table, [Note("annotations-unbalanced", text, unpaired)]
