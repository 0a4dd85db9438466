"""Writes docs/peers_memory.md: memory figures beside PyTorch's own tools on the same snapshots.

``python docs/make_peers_memory.py``; needs torch, and the public files in ``MAIPROF_CORPUS`` or
``../shared/corpus`` beside the repository.
"""

from __future__ import annotations

import gzip
import os
import pickle
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import maiprof_nb
from maiprof_nb.analysis.active_memory import MemoryDevice, memory_devices, memory_log

HERE = Path(__file__).parent
TARGET = HERE / "peers_memory.md"
CORPUS = Path(os.environ.get("MAIPROF_CORPUS", HERE.parents[1] / "shared" / "corpus"))
HEAD = """# Memory beside PyTorch's own tools

Every public snapshot, ours and theirs, in bytes unless they print less. Theirs: `calc_active`, `segsum` and
the flame graph `segments` of `torch.cuda._memory_viz`, run on the same pickle; and the heights of the pages
that `trace_plot` writes (Active Memory Timeline, Active Cached Memory Timeline), whose script MemoryViz.js is
not part of torch: its way of counting is followed in `docs/_peer_memory_viz.py`, and was found equal to the
script's own for each of these files and devices (pytorch/pytorch 00067369, 15 000 elements). `trace` also
prints a `TOTAL MEM`; its loop overwrites the sum with the number of each event, so it is not compared.
Written by `docs/make_peers_memory.py`.

| file | figure | ours | theirs | why they differ |
|---|---|---|---|---|
"""
_SAME = "same"
_NO_SUM = "theirs stops: blocks and segments do not add up"
_ROUNDING = "theirs adds up what was requested, ours the blocks that were cut for it"
_FIRST = "theirs looks after each event only, and the most was there before the first"
_HISTORY = "theirs has a line for each entry of a block's history"
_UNTOLD = "made-up numbers: more is allocated than in segments, so ours says nothing"
_UNEXPLAINED = "?"


class Row(NamedTuple):
    """One line of the page."""

    file: str
    figure: str
    ours: str
    theirs: str
    why: str


def rows(corpus: Path) -> Iterator[Row]:
    """All lines of the table."""
    for path in sorted((corpus / "memory").glob("*/*.pickle*")):
        content = _content(path)
        session = maiprof_nb.load(path)
        name = path.relative_to(corpus / "memory").as_posix()
        yield from _at_the_end(name, content, session)
        for device in memory_devices(session):
            yield from _curves(name, content, session, device)


def _content(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    found: dict[str, Any] = pickle.loads(data)  # noqa: S301 - public files read before
    return found


def _at_the_end(name: str, content: dict[str, Any], session: Any) -> Iterator[Row]:
    peer = _peer()
    blocks, segments = (session.recordings[0].table(table) for table in ("blocks", "segments"))
    live = blocks[blocks["state"].eq("allocated")]
    said = peer.printed(content)
    stops = _UNEXPLAINED if said else _NO_SUM
    requested, reserved = int(live["requested_bytes"].sum()), int(segments["size_bytes"].sum())
    for figure, size, key in (
        ("requested at the end", requested, "total_allocated"),
        ("reserved at the end", reserved, "total_reserved"),
    ):
        ours = peer.printed_size(size)
        yield _row(name, figure, ours, said.get(key, "-"), stops)
    yield _row(name, "segments", str(len(segments)), said.get("segments", "-"), stops)
    yield _row(name, "blocks", str(len(blocks)), str(peer.flame_blocks(content)), _HISTORY)


def _curves(
    name: str, content: dict[str, Any], session: Any, device: MemoryDevice
) -> Iterator[Row]:
    peer, number = _peer(), device.device
    log = memory_log(session, device)
    of = f" on GPU {number}" if len(memory_devices(session)) > 1 else ""
    active = str(peer.active_bytes(content, number))
    yield _row(
        name, f"allocated at the end{of}", str(log.allocated_bytes[-1]), active, _UNEXPLAINED
    )
    page = str(peer.page_peak(content, number))
    cached = str(peer.page_peak(content, number, segments=True))
    most, why = _most(log.requested_bytes)
    yield _row(name, f"peak requested{of}", most, page, why)
    most, _ = _most(log.allocated_bytes)
    yield _row(name, f"peak allocated{of}", most, page, _ROUNDING)
    most, why = _most(log.reserved_bytes)
    yield _row(name, f"peak reserved{of}", most, cached, why)


def _most(curve: Any) -> tuple[str, str]:
    """The highest value, and why theirs is lower if it stood before the first event."""
    if curve is None:
        return "-", _UNTOLD
    return str(curve.max()), _FIRST if curve[0] == curve.max() else _UNEXPLAINED


def _row(name: str, figure: str, ours: str, theirs: str, why: str) -> Row:
    return Row(name, figure, ours, theirs, _SAME if ours == theirs else why)


def _peer() -> Any:
    sys.path.insert(0, str(HERE))
    import _peer_memory_viz  # noqa: PLC0415 - beside this script

    sys.path.pop(0)
    return _peer_memory_viz


def page(found: Iterable[Row]) -> str:
    """The whole page."""
    return HEAD + "".join(f"| {' | '.join(row)} |\n" for row in found)


if __name__ == "__main__":
    if not CORPUS.is_dir():
        sys.exit(f"no corpus at {CORPUS}: set MAIPROF_CORPUS to the folder of real files")
    TARGET.write_text(page(rows(CORPUS)), encoding="utf-8")
