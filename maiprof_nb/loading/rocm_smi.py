"""``rocm-smi --csv`` output, printed once or many times into one file."""

from __future__ import annotations

import re

from maiprof_nb.loading import _metric_times, _metrics
from maiprof_nb.loading._long_samples import LongSamples, Quantity
from maiprof_nb.loading._metrics import Dropped
from maiprof_nb.recording import Note, Recording

NAME = "rocm-smi"

_HEADER = re.compile(r"^device,[^\n]*(?:\([A-Za-z%]{1,8}\)|GPU use|Package Power)", re.MULTILINE)
_WARNING = re.compile(r"\s*(?:WARNING|ERROR)\b")
_NAME = re.compile(r"(?P<name>.{1,200}?):? *(?:\((?P<unit>[A-Za-z%]{1,8})\))?:?")
_CELL = re.compile(r"\(?(?P<number>-?\d{1,20}(?:\.\d{1,10})?) ?(?P<unit>%|[A-Za-z]{1,4})?\)?")
_UNITS = {"c": "C", "Mhz": "MHz", "VRAM%": "%"}


def sniff(data: bytes) -> bool:
    """True if a header ``device,...`` with units in parentheses stands near the beginning."""
    return bool(_HEADER.search(_metrics.head_of(data)))


def read(data: bytes, source: str) -> Recording:
    """Read the tables, of which older versions print several a call; there is an order only.

    Sizes are in bytes, as printed. Text cells (performance level) are no counters.
    """
    dropped, samples = Dropped(), LongSamples()
    header: list[str] | None = None
    ticks: list[int] = []
    seen: dict[tuple[str, str], int] = {}
    warnings: list[str] = []
    for line_number, line in _metrics.lines(data):
        cells = _metrics.split(line)
        if cells[0] == "device":
            header = cells
            continue
        if _WARNING.match(line):
            warnings.append(line.strip()[:120])
            continue
        if header is None or len(cells) != len(header) or not cells[0]:
            dropped.add(line_number, line)
            continue
        key = cells[0], ",".join(header)
        ticks.append(seen.get(key, 0))
        seen[key] = ticks[-1] + 1
        for name, cell in zip(header[1:], cells[1:], strict=True):
            _take(samples, len(ticks) - 1, name, cell, cells[0])
    notes = dropped.notes()
    if warnings:
        text = f"The log holds {len(warnings)} warnings; the first: {warnings[0]}"
        notes.append(Note("source-warning", text, len(warnings)))
    return samples.recording(source, NAME, _metric_times.ordered(ticks), notes=notes)


def _take(samples: LongSamples, event: int, column: str, cell: str, device: str) -> None:
    found, named = _CELL.fullmatch(cell[:40]), _NAME.fullmatch(column)
    unit = (named["unit"] if named else None) or (found["unit"] if found else None) or ""
    name = named["name"] if named else column[:200]
    quantity = Quantity(name, _metrics.canonical_unit(_UNITS.get(unit, unit)), device)
    if found:
        samples.add(event, quantity, float(found["number"]))
    elif (named and named["unit"]) or cell in {"N/A", ""}:
        samples.add(event, quantity, float("nan"))
