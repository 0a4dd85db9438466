"""Every published trace loads with the counts of the corpus's own table, or is refused."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

import maiprof_nb
from maiprof_nb.errors import LoadError

CORPUS = Path(os.environ.get("MAIPROF_CORPUS", Path(__file__).parents[3] / "shared" / "corpus"))
TABLE = CORPUS / "kineto" / "SOURCES.md"
FLOWS = {"ac2g", "async", "async_cpu_to_gpu", "async_gpu"}
KERNELS = {"kernel", "Kernel", "mtia_ccp_events"}
NOT_TRACES = (
    "chakra/",
    "et-pair/benchmark_simple_add_et",
    "-et/dlrm_eg",
    "linear_et",
)
TIMELINE = "memory_timeline.raw"  # no trace either, but read: see test_memory_timeline


@dataclass(frozen=True)
class Row:
    """One line of the table: the counts its collectors made with their own script."""

    file: str
    events: int | None
    kernels: int
    python_calls: int
    memory_events: int
    flows: int
    steps: int


def published() -> list[Row]:
    if not TABLE.is_file():
        return []
    section = TABLE.read_text().split("## Files as their authors published them")[1]
    section = section.split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return [_row(cells) for cells in rows if "/" in cells[0]]


def _row(cells: list[str]) -> Row:
    def number(text: str) -> int:
        digits = re.match(r"[\d ]+", text)
        return int(digits[0].replace(" ", "")) if digits else 0

    events = None if cells[7].strip() in {"-", "0"} else number(cells[7])
    return Row(cells[0], events, *(number(cell) for cell in cells[8:13]))


ROWS = published()
LIMIT_NOTE = f"no corpus at {CORPUS}: set MAIPROF_CORPUS to the folder of real files"


@pytest.mark.skipif(not ROWS, reason=LIMIT_NOTE)
def test_the_table_was_read() -> None:
    assert len(ROWS) == 81


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.file)
def test_counts_are_those_of_the_table(row: Row) -> None:
    path = CORPUS / "kineto" / row.file
    if any(part in row.file for part in NOT_TRACES):
        with pytest.raises(LoadError) as refusal:
            maiprof_nb.load(path)
        assert row.file.rsplit("/", 1)[-1] in refusal.value.sentence
        return
    (recording,) = maiprof_nb.load(path).recordings
    by_event = recording.events
    assert sum(by_event.values()) == (row.events or 0)
    if TIMELINE in row.file:
        return
    kernel_events = sum(n for key, n in by_event.items() if key.split("/", 1)[1] in KERNELS)
    assert kernel_events == row.kernels
    assert len(recording.table("kernels")) >= row.kernels
    assert len(recording.table("python_calls")) == row.python_calls
    assert len(recording.table("memory_events")) == row.memory_events
    flows = recording.table("flows")
    assert int(flows["category"].isin(FLOWS).sum()) == row.flows
    assert recording.table("steps")["step"].nunique() == row.steps


@pytest.mark.parametrize("row", [r for r in ROWS if r.events], ids=lambda row: row.file)
def test_every_event_is_in_a_table(row: Row) -> None:
    if any(part in row.file for part in NOT_TRACES):
        pytest.skip("not a trace")
    (recording,) = maiprof_nb.load(CORPUS / "kineto" / row.file).recordings
    seen = [frame["event"] for name, frame in recording.tables.items() if name != "steps"]
    kept = {event for events in seen for event in events}
    unplaced = sum(note.count for note in recording.notes if note.code == "event-unplaced")
    assert len(kept) + unplaced == row.events
