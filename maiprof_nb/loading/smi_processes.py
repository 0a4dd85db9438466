"""``nvidia-smi --query-compute-apps=... --format=csv`` logs: memory by process."""

from __future__ import annotations

import re
from collections.abc import Sequence

from maiprof_nb.errors import LoadError
from maiprof_nb.loading import _metric_times, _metrics
from maiprof_nb.loading._long_samples import LongSamples, Quantity
from maiprof_nb.loading._metrics import Dropped
from maiprof_nb.loading._processes import Ticks, base_name
from maiprof_nb.recording import Recording

NAME = "nvidia-smi-compute-apps"

_FIELD = re.compile(r"(?P<name>[A-Za-z][\w.]*)(?: \[(?P<unit>[^\]]{1,20})\])?")
_KNOWN = frozenset(
    {
        "timestamp", "gpu_name", "gpu_bus_id", "gpu_serial", "gpu_uuid", "pid", "process_name",
        "name", "used_gpu_memory", "used_memory",
    }
)  # fmt: skip
_MEMORY = ("used_gpu_memory", "used_memory")
_DEVICES = ("gpu_bus_id", "gpu_uuid", "gpu_serial", "gpu_name")
_TIME_FORMATS = ("%Y/%m/%d %H:%M:%S.%f", "%Y/%m/%d %H:%M:%S")


def fields(line: str) -> list[tuple[str, str]] | None:
    """Names and units if `line` is the header of a query of processes, else None."""
    found = [_FIELD.fullmatch(cell.strip()) for cell in line.split(",")]
    if len(found) > len(_KNOWN) or not all(found):
        return None
    names = [(match["name"], match["unit"] or "") for match in found if match]
    plain = {name for name, _ in names}
    return names if plain <= _KNOWN and "pid" in plain and plain & set(_MEMORY) else None


def sniff(data: bytes) -> bool:
    """True if such a header stands near the beginning."""
    return any(fields(line) for line in _metrics.head_of(data).splitlines())


def read(data: bytes, source: str) -> Recording:
    """Read a log of processes; each process is a counter, ``used_gpu_memory [pid 7 python]``.

    The process is named by the last part of its path; the whole path is in ``meta``. A GPU is
    called by its bus id, because this query knows no index.

    Raises
    ------
    LoadError
        If there is no header of process fields.
    """
    dropped, samples, ticks = Dropped(), LongSamples(), Ticks()
    header: list[tuple[str, str]] | None = None
    stamps: list[str] = []
    processes: dict[str, str] = {}
    for line_number, line in _metrics.lines(data):
        found = fields(line)
        header = found or header
        if found:
            continue
        row = _row(line, header) if header else None
        if not header or not row or not row["pid"].isdecimal():
            dropped.add(line_number, line)
            continue
        counter, unit = next((name, unit) for name, unit in header if name in _MEMORY)
        device = next((row[name] for name in _DEVICES if name in row), "0")
        name = row.get("process_name", row.get("name", ""))
        processes[row["pid"]] = name
        what = f"{counter} [pid {row['pid']} {base_name(name)}]"
        ticks.add((device, row["pid"]))
        value = _metrics.number(row[counter])
        quantity = Quantity(what, _metrics.canonical_unit(unit), device)
        samples.add(len(stamps), quantity, value)
        stamps.append(row.get("timestamp", ""))
    if header is None:
        raise LoadError(
            "has no header of nvidia-smi process fields",
            where=source,
            remedy="Record with --format=csv, without noheader",
        )
    timed = any(name == "timestamp" for name, _ in header)
    times = (
        _metric_times.read(stamps, _TIME_FORMATS) if timed else _metric_times.ordered(ticks.numbers)
    )
    meta = {"processes": processes}
    return samples.recording(source, NAME, times, notes=dropped.notes(), meta=meta)


def _row(line: str, header: Sequence[tuple[str, str]]) -> dict[str, str] | None:
    """Cells by name; commas inside the name of a process belong to it."""
    cells = [cell.strip() for cell in line.split(",")]
    names = [name for name, _ in header]
    at = next((names.index(name) for name in ("process_name", "name") if name in names), None)
    surplus = len(cells) - len(names)
    if surplus > 0 and at is not None:
        cells[at : at + surplus + 1] = [",".join(cells[at : at + surplus + 1])]
    return dict(zip(names, cells, strict=True)) if len(cells) == len(names) else None
