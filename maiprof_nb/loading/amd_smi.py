"""``amd-smi metric --csv`` logs."""

from __future__ import annotations

import re

from maiprof_nb.loading import _metric_times, _metrics
from maiprof_nb.loading._long_samples import LongSamples, Quantity
from maiprof_nb.loading._metrics import Dropped
from maiprof_nb.recording import Recording

NAME = "amd-smi"

_HEADER = re.compile(
    r"^(?:timestamp,)?gpu,(?:\w{1,60},){0,40}(?:gfx_activity|socket_power|edge|hotspot)\b",
    re.MULTILINE,
)
_MISSING = frozenset({"N/A", "NA", ""})
_UNITS = (
    (re.compile(r"_activity$|_usage$|busy"), "%"),
    (re.compile(r"power$"), "W"),
    (re.compile(r"_clk$"), "MHz"),
    (re.compile(r"_voltage$"), "mV"),
    (re.compile(r"^(?:edge|hotspot|mem)$|temperature"), "C"),
    (re.compile(r"_vram$|_gtt$"), "MB"),
)


def sniff(data: bytes) -> bool:
    """True if the header of amd-smi's metrics stands near the beginning."""
    return bool(_HEADER.search(_metrics.head_of(data)))


def read(data: bytes, source: str) -> Recording:
    """Read the log; a cell that is a list gives one counter a place, ``jpeg_activity[3]``.

    Words such as ENABLED are no counters. Without the column ``timestamp`` there is an order
    only.
    """
    dropped, samples = Dropped(), LongSamples()
    header: list[str] = []
    stamps: list[str] = []
    devices: list[str] = []
    for line_number, line in _metrics.lines(data):
        if _HEADER.match(line):
            header = _metrics.unique(_metrics.split(line))
            continue
        cells = _metrics.split(line)
        if not header or len(cells) != len(header):
            dropped.add(line_number, line)
            continue
        row = dict(zip(header, cells, strict=True))
        if not row["gpu"].isdecimal():
            dropped.add(line_number, line)
            continue
        for name, cell in row.items():
            if name not in {"timestamp", "gpu"}:
                _take(samples, len(stamps), name, cell, row["gpu"])
        stamps.append(row.get("timestamp", ""))
        devices.append(row["gpu"])
    times = (
        _metric_times.read(stamps)
        if "timestamp" in header
        else _metric_times.ordered(_metrics.seen_before(devices))
    )
    return samples.recording(source, NAME, times, notes=dropped.notes())


def _take(samples: LongSamples, event: int, name: str, cell: str, device: str) -> None:
    unit = next((unit for pattern, unit in _UNITS if pattern.search(name)), None)
    if cell.startswith("[") and cell.endswith("]"):
        parts = [(f"{name}[{at}]", part) for at, part in enumerate(cell[1:-1].split(","))]
    else:
        parts = [(name, cell)]
    for counter, part in parts:
        text = part.strip(" '\"")
        value = _metrics.number(text)
        if value == value or text in _MISSING:  # noqa: PLR0124  (not a number differs from itself)
            samples.add(event, Quantity(counter, unit, device), value)
