"""tegrastats logs turned into a JSON list: one object a line of the log."""

from __future__ import annotations

import re
from typing import Any

from maiprof_nb.loading import _metric_times, _metrics
from maiprof_nb.loading._json_objects import number_of, objects_of_list
from maiprof_nb.loading._long_samples import LongSamples, Quantity
from maiprof_nb.recording import Note, Recording

NAME = "tegrastats-json"

_MARK = re.compile(r'\A\s*\[\s*\{[^{}\[\]]{0,2000}"(?:ram_used|gpu_usage)"\s*:')
_UNITS = {
    **dict.fromkeys(("ram_used", "ram_total", "swap_used", "swap_total"), "MiB"),
    "gpu_usage": "%",
}
_RAIL = re.compile(r"(?:vdd|vin|pom)_\w{1,32}")
_GPU = "0"  # a Jetson has one


def sniff(data: bytes) -> bool:
    """True for a list whose first object has the keys of tegrastats."""
    return bool(_MARK.match(_metrics.head_of(data)))


def read(data: bytes, source: str) -> Recording:
    """Read the list, up to where it is cut if it is; rails are in mW, memory in MiB."""
    text = _metrics.text_of(data)
    objects, whole = objects_of_list(text, max(text.find("["), 0))
    samples = LongSamples()
    stamps: list[str] = []
    for row in objects:
        _take(samples, len(stamps), row)
        stamps.append(str(row.get("timestamp", "")))
    notes = []
    if not whole:
        text = f"The list breaks off after {len(objects)} samples; what stands before it was read."
        notes.append(Note("cut", text))
    times = _metric_times.read(stamps) if any(stamps) else _metric_times.ordered(range(len(stamps)))
    return samples.recording(source, NAME, times, notes=notes)


def _take(samples: LongSamples, event: int, row: dict[str, Any]) -> None:
    for name, value in row.items():
        if name == "cpu" and isinstance(value, list):
            loads = [number_of(load) for load in value]
            for at, load in enumerate(loads):
                samples.add(event, Quantity(f"cpu[{at}]", "%"), load)
            samples.add_cpu(event, sum(loads) / len(loads) if loads else float("nan"))
        elif name == "temperature" and isinstance(value, dict):
            for place, heat in value.items():
                device = _GPU if place == "gpu" else None
                samples.add(event, Quantity(f"temperature {place}", "C", device), number_of(heat))
        elif name != "timestamp" and not isinstance(value, str | dict | list):
            unit = _UNITS.get(name) or ("mW" if _RAIL.fullmatch(name) else None)
            device = _GPU if "gpu" in name else None
            samples.add(event, Quantity(name, unit, device), number_of(value))
