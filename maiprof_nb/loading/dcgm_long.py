"""Long tables of DCGM fields: ``GPUId,TimeStampUs,Field,Values`` or one field a file."""

from __future__ import annotations

import re

from maiprof_nb.loading import _metric_times, _metrics
from maiprof_nb.loading._long_samples import LongSamples, Quantity
from maiprof_nb.loading._metrics import Dropped
from maiprof_nb.recording import Recording

NAME = "dcgm-long"

_HEADER = re.compile(r"\A\s*GPUId,TimeStampUs,(?P<rest>[^\n]{1,200})")
_UNITS = (
    (re.compile(r"throttle|reasons|count"), None),
    (re.compile(r"power|watts", re.IGNORECASE), "W"),
    (re.compile(r"temp"), "C"),
    (re.compile(r"util"), "%"),
    (re.compile(r"(?:_active|_occupancy|_active_.*)$"), "ratio"),
    (re.compile(r"clock"), "MHz"),
    (re.compile(r"^fb_|_fb_|memory_(?:used|free|total)"), "MiB"),
    (re.compile(r"energy"), "mJ"),
)


def sniff(data: bytes) -> bool:
    """True if the first line is such a header."""
    return bool(_HEADER.match(_metrics.head_of(data)[:400]))


def read(data: bytes, source: str) -> Recording:
    """Read the table; rows are grouped by GPU and field, so time runs back between groups.

    Flags and masks are numbers without a unit. DCGM's marks for "no value" are left out.
    """
    dropped, samples = Dropped(), LongSamples()
    stamps: list[str] = []
    blanks = 0
    header: list[str] = []
    for line_number, line in _metrics.lines(data):
        cells = _metrics.split(line)
        if cells[:2] == ["GPUId", "TimeStampUs"]:
            header = cells[2:]
            continue
        pairs = _pairs(header, cells[2:])
        if not pairs or not cells[0].isdecimal() or not cells[1].isdecimal():
            dropped.add(line_number, line)
            continue
        for counter, cell in pairs:
            value = _metrics.number(cell)
            if _metrics.is_blank(value):
                blanks += 1
                value = float("nan")
            samples.add(len(stamps), Quantity(counter, _unit(counter), cells[0]), value)
        stamps.append(cells[1])
    notes = [*dropped.notes(), *_metrics.blank_note(blanks)]
    return samples.recording(source, NAME, _metric_times.read(stamps), notes=notes)


def _pairs(header: list[str], cells: list[str]) -> list[tuple[str, str]]:
    """Counters and their cells; none where the row does not fit the header."""
    if not header or len(header) != len(cells):
        return []
    if header[:2] == ["Field", "Values"]:
        return [(cells[0], cells[1])]
    return list(zip(header, cells, strict=True))


def _unit(counter: str) -> str | None:
    return next((unit for pattern, unit in _UNITS if pattern.search(counter)), None)
