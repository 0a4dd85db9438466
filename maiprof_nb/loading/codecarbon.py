"""``emissions.csv`` of CodeCarbon: one row a run, written at its end."""

from __future__ import annotations

import re

from maiprof_nb.loading import _metric_times, _metrics
from maiprof_nb.loading._long_samples import LongSamples, Quantity
from maiprof_nb.loading._metrics import Dropped
from maiprof_nb.recording import Note, Recording

NAME = "codecarbon"

_HEADER = re.compile(r"\Atimestamp,[\w,]{1,2000}\bemissions\b[\w,]{1,2000}\bcodecarbon_version\b")
_UNITS = {
    "duration": "s",
    "emissions": "kg",
    "emissions_rate": "kg/s",
    **dict.fromkeys(("cpu_power", "gpu_power", "ram_power"), "W"),
    **dict.fromkeys(("cpu_energy", "gpu_energy", "ram_energy", "energy_consumed"), "kWh"),
    "ram_total_size": "GB",
    **dict.fromkeys(
        ("cpu_utilization_percent", "gpu_utilization_percent", "ram_utilization_percent"), "%"
    ),
    "ram_used_gb": "GB",
}


def sniff(data: bytes) -> bool:
    """True if the first line is the header of emissions.csv."""
    return bool(_HEADER.match(_metrics.head_of(data)))


def read(data: bytes, source: str) -> Recording:
    """Read the runs: each row is one sample, at the time the run ended.

    Powers are means over the run, energies and emissions totals of it; where the computer
    stands and what it is are no counters. Columns are of all GPUs together.
    """
    dropped, samples = Dropped(), LongSamples()
    header: list[str] = []
    stamps: list[str] = []
    for line_number, line in _metrics.lines(data):
        cells = _metrics.split(line)
        if cells[0] == "timestamp":
            header = _metrics.unique(cells)
            continue
        if len(cells) != len(header):
            dropped.add(line_number, line)
            continue
        row = dict(zip(header, cells, strict=True))
        for name, unit in _UNITS.items():
            if name in row:
                value = _metrics.number(row[name])
                samples.add(len(stamps), Quantity(name, unit), value)
                if name == "cpu_utilization_percent":
                    samples.add_cpu(len(stamps), value)
        stamps.append(row["timestamp"])
    text = "Each row is the summary of a run (means and totals), at the time it ended."
    notes = [*dropped.notes(), Note("one-sample-a-run", text)]
    return samples.recording(source, NAME, _metric_times.read(stamps), notes=notes)
