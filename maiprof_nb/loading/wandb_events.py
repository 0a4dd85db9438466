"""System metrics of Weights & Biases: JSON lines with ``system.gpu.0.gpu`` and ``_timestamp``."""

from __future__ import annotations

import re
from typing import Any

from maiprof_nb.loading import _metric_times, _metrics
from maiprof_nb.loading._json_objects import number_of, objects_of_lines
from maiprof_nb.loading._long_samples import LongSamples, Quantity
from maiprof_nb.loading._metrics import Dropped
from maiprof_nb.recording import Recording

NAME = "wandb-events"

_MARK = re.compile(
    r'\A\s*\{(?=[^\n]{0,20000}"_(?:timestamp|runtime)"\s*:)'
    r'(?=[^\n]{0,20000}"system[./](?:gpu|cpu|memory|proc|disk|network)\b)'
)
_GPU = re.compile(
    r"(?P<before>system[./]gpu(?:\.process)?)\.(?P<number>\d{1,3})\.(?P<name>.{1,80})"
)
_CORE = re.compile(r"system[./]cpu\.\d{1,4}\.cpu_percent")
_UNITS = (
    (re.compile(r"Bytes$"), "B"),
    (re.compile(r"Watts$"), "W"),
    (re.compile(r"MB$|disk\.\w*\.?(?:in|out)$"), "MB"),
    (re.compile(r"GB$"), "GB"),
    (re.compile(r"MHz$|[cC]lock"), "MHz"),
    (re.compile(r"gpu\.temp$"), "C"),
    (re.compile(r"network\.(?:sent|recv)$"), "B"),
    (re.compile(r"[pP]ercent$|memoryAllocated$|gpu\.gpu$|gpu(?:\.process)?\.memory$"), "%"),
    (re.compile(r"^system[./](?:cpu|memory|disk)$"), "%"),
    (re.compile(r"gpu\.process\.gpu$"), "%"),
)


def sniff(data: bytes) -> bool:
    """True if the first line is an object with system metrics and a time."""
    return bool(_MARK.match(_metrics.head_of(data)))


def read(data: bytes, source: str) -> Recording:
    """Read the events; ``system.gpu.1.temp`` is the counter ``system.gpu.temp`` of device 1.

    ``_timestamp`` is seconds since 1970; logs with ``_runtime`` only have times from the start
    of the run. ``cpu.utilization`` is the mean of the cores' ``cpu_percent``: ``system.cpu``
    is of the run's own processes, and no utilisation of the host.
    """
    dropped, samples = Dropped(), LongSamples()
    absolute: list[str] = []
    relative: list[str] = []
    for line_number, line, row in objects_of_lines(_metrics.text_of(data)):
        if row is None:
            dropped.add(line_number, line)
            continue
        _take(samples, len(absolute), row)
        absolute.append(_number_text(row.get("_timestamp")))
        relative.append(_number_text(row.get("_runtime")))
    stamps = _metric_times.read(absolute if any(absolute) else relative)
    return samples.recording(source, NAME, stamps, notes=dropped.notes())


def _take(samples: LongSamples, event: int, row: dict[str, Any]) -> None:
    cores = []
    for key, value in row.items():
        if not key.startswith("system") or isinstance(value, str | dict | list):
            continue
        number = number_of(value)
        found = _GPU.fullmatch(key[:200])
        name = f"{found['before']}.{found['name']}" if found else key[:200]
        unit = next((unit for pattern, unit in _UNITS if pattern.search(name)), None)
        samples.add(event, Quantity(name, unit, found["number"] if found else None), number)
        if _CORE.fullmatch(key[:200]):
            cores.append(number)
    if cores:
        samples.add_cpu(event, sum(cores) / len(cores))


def _number_text(value: object) -> str:
    return "" if isinstance(value, bool) or not isinstance(value, int | float) else repr(value)
