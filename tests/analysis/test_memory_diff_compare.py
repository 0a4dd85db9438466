"""Two real dumps of one program, against PyTorch's own `torch.cuda._memory_viz.compare`."""

from __future__ import annotations

import contextlib
import gzip
import io
import pickle
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import maiprof_nb
from maiprof_nb.analysis.memory_diff import memory_diff
from tests.conftest import CORPUS

viz = pytest.importorskip("torch.cuda._memory_viz", reason="compares with PyTorch's own tool")

PAIRS = [
    ("flexgen/1.3b_snapshot_a.pickle", "flexgen/1.3b_snapshot_c.pickle"),
    ("octree-nca/my_snapshot_3.pickle", "octree-nca/my_snapshot_5.pickle"),
    (
        "cs336-kk/memory_ctx128_fullstep.pickle.gz",
        "cs336-kk/memory_ctx512_fullstep.pickle.gz",
    ),
]
FRAME = re.compile(r"^(.*) \((.*):(\d+)\)$")


def segments(path: Path) -> list[Any]:
    """Files of the corpus, whose pickles hold nothing but lists, dicts, text and numbers."""
    text = path.read_bytes()
    found = pickle.loads(gzip.decompress(text) if path.suffix == ".gz" else text)
    return found["segments"] if isinstance(found, dict) else found


def compared(before: list[Any], after: list[Any]) -> list[tuple[str, str, str, int]]:
    """What PyTorch writes for its flame graph: side, state, stack and bytes of each block."""
    with contextlib.redirect_stdout(io.StringIO()):
        text = viz.compare(before, after, format_flamegraph=lambda lines: lines)
    rows = []
    for line in text.splitlines():
        words, size = line.rsplit(" ", 1)
        side, _stream, _segment, state, *stack = words.split(";")
        rows.append((side, state, ";".join(stack), int(size)))
    return rows


def as_torch_writes(frames: str) -> str:
    """Our frames in PyTorch's words, without those that it leaves out."""
    told = []
    for text in reversed(frames.splitlines()):
        found = FRAME.match(text)
        name, file, line = found.groups() if found else (text, "", "0")
        if viz._frame_filter(name, file):
            told.append(viz._frame_fmt({"name": name, "filename": file, "line": line}))
    return ";".join(told) or "<non-python>"


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair[0].split("/")[0])
def test_bytes_and_blocks_are_those_of_torchs_compare(pair: tuple[str, str]) -> None:
    """Dumps of different processes share no segment, so that `compare` lists every block."""
    paths = [CORPUS / "memory" / name for name in pair]
    for path in paths:
        if not path.is_file():
            pytest.skip(f"no corpus at {CORPUS}: set MAIPROF_CORPUS")
    theirs = compared(*map(segments, paths))
    ours = memory_diff(*map(maiprof_nb.load, paths))
    live = [row for row in theirs if row[1] == "active_allocated"]
    for side in ("before", "after"):
        mine = [row for row in live if row[0] == f"only_{side}"]
        # with the gaps between what was asked for and the block, as the allocator rounds
        assert ours[f"{side}_bytes"].sum() == sum(size for *_, size in mine)
        blocks: Counter[str] = Counter()
        for stack, count in zip(ours["frames"], ours[f"{side}_blocks"], strict=True):
            blocks[as_torch_writes(stack)] += int(count)
        assert +blocks == Counter(stack for _, _, stack, _ in mine if stack != "<gaps>")
    assert ours["grown_bytes"].sum() == ours["after_bytes"].sum() - ours["before_bytes"].sum()
