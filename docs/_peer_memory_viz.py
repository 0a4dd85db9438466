"""What PyTorch's own tools say about a memory snapshot, run or followed on the same pickle.

``segsum`` and ``calc_active`` of `torch.cuda._memory_viz` are run. The pages that ``trace_plot``
writes hold the pickle itself, and a script fetched from PyTorch's repository (MemoryViz.js) adds
it up in the browser; its way of counting is followed here in other words.
"""

from __future__ import annotations

import re
from typing import Any

BANDS = 15_000  # the largest so many elements are drawn, and only their changes move the peak


def printed(content: dict[str, Any]) -> dict[str, str]:
    """Totals at the end of what ``segsum`` prints, e.g. ``total_reserved`` -> ``1.5GiB``."""
    from torch.cuda import _memory_viz  # noqa: PLC0415 - read where torch is not installed

    try:
        said = _memory_viz.segsum(content)
    except AssertionError:  # it checks that blocks and segments add up
        return {}
    return dict(re.findall(r"^(segments|total_\w+): (\S+)", said, re.MULTILINE))


def active_bytes(content: dict[str, Any], device: int) -> int:
    """Bytes of live blocks at the end, by ``calc_active``."""
    from torch.cuda import _memory_viz  # noqa: PLC0415

    mine = [segment for segment in content["segments"] if segment["device"] == device]
    return sum(_memory_viz.calc_active(segment) for segment in mine)


def printed_size(size_bytes: int) -> str:
    """As ``segsum`` prints bytes."""
    from torch.cuda import _memory_viz  # noqa: PLC0415

    return repr(_memory_viz.Bytes(size_bytes))


def flame_blocks(content: dict[str, Any]) -> int:
    """Lines of the flame graph ``segments``, but for those of gaps."""
    from torch.cuda import _memory_viz  # noqa: PLC0415

    lines = _memory_viz.segments(content, format_flamegraph=str.splitlines)
    return sum(";<gaps> " not in line for line in lines)


def page_peak(content: dict[str, Any], device: int, *, segments: bool = False) -> int:
    """The height of the page's Active Memory Timeline, or of its Active Cached one.

    Elements are what is allocated in the log, what is freed there without having been, and what
    lives at the end without having been; the latter two are there from the start. Sizes are as
    requested. The peak is looked for after each event, so not before the first.
    """
    opens, closes = ("segment_alloc", "segment_free") if segments else ("alloc", "free_completed")
    sizes: list[int] = []
    order: list[int] = []
    at: dict[int, int] = {}
    for row in content["device_traces"][device]:
        if row["action"] == opens:
            at[row["addr"]] = len(sizes)
            order.append(len(sizes))
            sizes.append(row["size"])
        elif row["action"] == closes:
            known = at.pop(row["addr"], None)
            order.append(len(sizes) if known is None else known)
            if known is None:
                sizes.append(row["size"])
    open_at_end = set(at.values())
    seen: dict[int, int] = {}
    for element in order:
        seen[element] = seen.get(element, 0) + 1
    early = [e for e, times in seen.items() if times == 1 and e not in open_at_end]
    for address, size in _at_the_end(content, device, segments=segments):
        if address not in at:
            early.append(len(sizes))
            sizes.append(size)
    if not order and early:
        order.append(early.pop())
    drawn = set(sorted(range(len(sizes)), key=lambda element: -sizes[element])[:BANDS])
    live = set(early)
    total = sum(sizes[element] for element in early)
    peak = 0
    for element in order:
        total += -sizes[element] if element in live else sizes[element]
        live ^= {element}
        peak = max(peak, total) if element in drawn else peak
    return peak


def _at_the_end(content: dict[str, Any], device: int, *, segments: bool) -> list[tuple[int, int]]:
    found = []
    for segment in content["segments"]:
        at = segment["address"]
        if segment["device"] == device and segments:
            found.append((at, segment["total_size"]))
        for block in segment["blocks"]:
            wanted = segment["device"] == device and not segments
            if wanted and block["state"] == "active_allocated":
                found.append((at, block["requested_size"]))
            at += block["size"]
    return found
