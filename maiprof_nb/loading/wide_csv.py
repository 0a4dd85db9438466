"""Tables people's own loggers write: a column of times, and a column a quantity with its unit.

Examples are the power of nodes (``timestamp,n1_watts,n2_watts``), a Jetson's
``timestamp,gpu_power_w,...`` and what scripts round psutil write (``time,cpu_percent,...``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from maiprof_nb.loading import (
    _metric_times,
    _metrics,
    amd_smi,
    codecarbon,
    dcgm_long,
    gpu_z,
    smi_processes,
    smi_query,
)
from maiprof_nb.loading import _quantities as named
from maiprof_nb.loading._long_samples import CPU_UTILIZATION, LongSamples
from maiprof_nb.loading._metrics import Dropped
from maiprof_nb.recording import Note, Recording

NAME = "wide-csv"

_SPECIAL = (smi_query, smi_processes, amd_smi, codecarbon, gpu_z, dcgm_long)
_COLUMN = re.compile(r"[A-Za-z][\w .%/()\[\]°-]{0,79}")
_MOST_WATTS = 3000  # no single GPU draws as much


def sniff(data: bytes) -> bool:
    """True if the first line names a time and quantities with units, in no known tool's way."""
    first = _metrics.head_of(data).lstrip("\r\n").partition("\n")[0]
    return header(first) is not None and not any(known.sniff(data) for known in _SPECIAL)


def header(line: str) -> list[str] | None:
    """Names of the columns, if `line` is the header of such a table."""
    names = _metrics.split(line)
    if len(names) < 2 or not all(_COLUMN.fullmatch(name) for name in names):
        return None
    if named.time_column(names) is None or not any(named.unit_of(name) for name in names):
        return None
    return _metrics.unique(names)


def read(data: bytes, source: str) -> Recording:
    """Read the table; columns without any number are no counters.

    A column named after a GPU (``gpu1_power_w``) belongs to that device, ``gpu_...`` without a
    number to GPU 0, others to the host, unless a column (``gpu``, ``device``) names the device
    of each row. Numbers are kept as written; a unit that cannot be right is noted.
    """
    dropped = Dropped()
    names: list[str] = []
    rows: list[list[str]] = []
    for line_number, line in _metrics.lines(data):
        cells = _metrics.split(line)
        if not names:
            names = _metrics.unique(cells)
        elif len(cells) != len(names):
            dropped.add(line_number, line)
        elif cells != names:
            rows.append(cells)
    columns = dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else {}
    time, of_row = named.time_column(names), named.device_column(names)
    stamps = (
        _metric_times.read(columns.get(time, ()))
        if time
        else _metric_times.ordered(range(len(rows)))
    )
    devices = columns.get(of_row) if of_row else None
    measured = {
        name: _metrics.numbers(cells)
        for name, cells in columns.items()
        if name not in {time, of_row}
    }
    measured = {name: values for name, values in measured.items() if np.isfinite(values).any()}
    samples = samples_of(measured, devices)
    notes = [*dropped.notes(), *notes_of(measured, has_device=devices is not None)]
    return samples.recording(source, NAME, stamps, notes=notes)


def samples_of(measured: dict[str, _metrics.Floats], devices: Sequence[str] | None) -> LongSamples:
    """Samples of the columns `measured`; `devices` names that of each row."""
    samples = LongSamples()
    for name, values in measured.items():
        events = np.arange(len(values), dtype=np.int64)
        fixed = named.quantity_of(name)
        for device in dict.fromkeys(devices or ()):
            mine = np.array([other == device for other in devices or ()], dtype=np.bool_)
            samples.add_column(events[mine], fixed._replace(device=device), values[mine])
        if not devices:
            samples.add_column(events, fixed, values)
        if named.is_cpu_load(name):
            known = np.isfinite(values)
            samples.add_column(events[known], CPU_UTILIZATION, values[known])
    return samples


def notes_of(measured: dict[str, _metrics.Floats], *, has_device: bool) -> list[Note]:
    """Notes on units that cannot be right and on GPUs that are not named."""
    notes = []
    for name, values in measured.items():
        most = float(np.nanmax(values))
        if named.unit_of(name) == "W" and "gpu" in name.lower() and most > _MOST_WATTS:
            text = (
                f"{name} reaches {most:g} W, more than any GPU draws; the column may hold "
                "milliwatts. The numbers were kept as they are."
            )
            notes.append(Note("implausible-unit", text, int((values > _MOST_WATTS).sum())))
    if not has_device and any(named.names_a_gpu_without_number(name) for name in measured):
        text = "The log does not say which GPU a column belongs to; it was taken to be GPU 0."
        notes.append(Note("device-unknown", text))
    return notes
