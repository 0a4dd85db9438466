"""CSV output of dstat and pcp-dstat: the host's CPU, memory, disks and network."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from maiprof_nb.loading import _metric_times, _metrics
from maiprof_nb.loading._long_samples import LongSamples, Quantity
from maiprof_nb.loading._metrics import Dropped
from maiprof_nb.recording import Note, Recording

NAME = "dstat"

_MARK = re.compile(r'\A"(?:Dstat|pcp-dstat)[^\n]{0,80}CSV output"')
_DATE = re.compile(r'"Date:","\d{1,2} \w{3} (?P<year>\d{4})\b')
_STAMP = re.compile(r"(?P<day>\d\d)-(?P<month>\d\d) (?P<clock>\d\d:\d\d:\d\d)")
_TIMES = ("%d-%m-%Y %H:%M:%S",)
_CLOCKS = frozenset({"time", "date/time", "epoch"})
_CPU = "total cpu usage"
_UNITS = (
    (re.compile(r"cpu\d* usage|^total usage"), "%"),
    (re.compile(r"^(?:memory usage|swap)"), "B"),
    (re.compile(r"^(?:dsk|net|paging)"), "B/s"),
    (re.compile(r"^(?:system|io|interrupts)"), "1/s"),
)


def sniff(data: bytes) -> bool:
    """True if the first line says that dstat wrote it."""
    return bool(_MARK.match(_metrics.head_of(data).lstrip()))


def read(data: bytes, source: str) -> Recording:
    """Read the log; a counter is named by group and column, ``total cpu usage / usr``.

    Stamps have no year: it is that of the last ``Date:`` line before them, and one more after
    each turn of the year. ``cpu.utilization`` is 100 less the idle and the waiting share.
    """
    dropped, samples = Dropped(), LongSamples()
    group: list[str] = []
    names: list[tuple[str, str]] = []
    stamps: list[str] = []
    year: int | None = None
    month = runs = 0
    for line_number, line in _metrics.lines(data):
        cells = _metrics.split(line)
        if line.startswith('"'):
            dated = _DATE.search(line[:4096])
            if dated:
                year, month = int(dated["year"]), 0
            if group and len(cells) >= len(group):
                names, group, runs = _named(group, cells), [], runs + 1
            elif not cells[0].endswith(":") and not _MARK.match(line):
                group = cells
            continue
        if not names or len(cells) != len(names):
            dropped.add(line_number, line)
            continue
        row = dict(zip(names, cells, strict=True))
        _take(samples, len(stamps), row)
        stamp, month, year = _stamp(row, month, year)
        stamps.append(stamp)
    notes = dropped.notes()
    if runs > 1:
        text = f"Headers between the rows, where the sampler was started again: {runs - 1}."
        notes.append(Note("log-restarted", text, runs - 1))
    return samples.recording(source, NAME, _times(stamps), notes=notes)


def _named(group: Sequence[str], columns: Sequence[str]) -> list[tuple[str, str]]:
    """Group and name of each column; a group's name stands over its first column only."""
    found, last = [], ""
    for at, column in enumerate(columns):
        last = (group[at] if at < len(group) else "") or last
        found.append((last, column))
    return found


def _take(samples: LongSamples, event: int, row: dict[tuple[str, str], str]) -> None:
    for (group, column), cell in row.items():
        if column in _CLOCKS:
            continue
        unit = next((unit for pattern, unit in _UNITS if pattern.search(group)), None)
        samples.add(event, Quantity(f"{group} / {column}", unit), _metrics.number(cell))
    idle = _metrics.number(row.get((_CPU, "idl"), ""))
    waiting = _metrics.number(row.get((_CPU, "wai"), "0"))
    samples.add_cpu(event, 100 - idle - (0 if math.isnan(waiting) else waiting))


def _stamp(
    row: dict[tuple[str, str], str], month: int, year: int | None
) -> tuple[str, int, int | None]:
    """The stamp of a row with its year, and month and year to go on from."""
    for (_, column), cell in row.items():
        if column == "epoch":
            return cell, month, year
        found = _STAMP.fullmatch(cell) if column in _CLOCKS else None
        if found and year is not None:
            now = int(found["month"])
            year += now < month  # December is followed by January
            return f"{found['day']}-{found['month']}-{year:04d} {found['clock']}", now, year
    return "", month, year


def _times(stamps: Sequence[str]) -> _metric_times.Stamps:
    if not any(stamps):
        return _metric_times.ordered(range(len(stamps)))
    dated = any("-" in stamp for stamp in stamps)
    return _metric_times.read(stamps, _TIMES if dated else ())
