"""``nvidia-smi -q`` text: everything about each GPU at one moment, or at several."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from maiprof_nb.loading import _metric_times, _metrics
from maiprof_nb.loading._long_samples import LongSamples, Quantity
from maiprof_nb.loading._processes import base_name
from maiprof_nb.recording import Note, Recording

NAME = "nvidia-smi-report"

_MARK = re.compile(r"^=+NVSMI LOG=+", re.MULTILINE)
_LINE = re.compile(r"(?P<blank> *)(?P<key>[^:\n]{1,80}?) *(?: : (?P<value>.*))?")
_GPU = re.compile(r"GPU (?P<id>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f:.]{4,16})")
_MEASURED = re.compile(r"(?P<number>-?\d{1,15}(?:\.\d{1,9})?) ?(?P<unit>%|[A-Za-z/]{1,6})")
_COUNTS = ("ECC", "Retired Pages", "Remapped Rows", "Replay", "Encoder Stats", "FBC Stats")
_PSTATE = re.compile(r"P\d{1,2}")
_TIMES = ("%a %b %d %H:%M:%S %Y",)


@dataclass
class _Place:
    """Where in the report a line stands."""

    report: int = -1
    gpu: str = ""
    mig: str = ""
    pid: str = ""
    sections: list[tuple[int, str]] = field(default_factory=list)


def sniff(data: bytes) -> bool:
    """True if the banner of the report stands near the beginning."""
    return bool(_MARK.search(_metrics.head_of(data)))


def read(data: bytes, source: str) -> Recording:
    """Read the report; a counter is named by its sections, ``Temperature / GPU Current Temp``.

    Values with a unit are counters, and so are counts of errors and the performance state; the
    rest describes the card. GPUs are numbered in order where all attached ones are reported,
    and called by bus id otherwise; a MIG device is ``0 GPU-I 2``.
    """
    samples, place = LongSamples(), _Place()
    stamps: list[str] = []
    attached: list[int] = []
    gpus: list[str] = []
    text = _metrics.text_of(data).replace("\0", "")
    for line in text.splitlines():
        found = _LINE.fullmatch(line[:400].rstrip())
        if _MARK.match(line):
            place = _Place(report=len(stamps))
            stamps.append("")
        gpu = _GPU.fullmatch(line.rstrip())
        if gpu:
            place = _Place(place.report, gpu["id"])
            gpus += [gpu["id"]] if gpu["id"] not in gpus else []
        if not found or place.report < 0:
            continue
        key, value, depth = found["key"], found["value"], len(found["blank"])
        if not place.gpu:
            if key == "Timestamp" and value:
                stamps[-1] = value.strip()
            elif key == "Attached GPUs" and value and value.strip().isdecimal():
                attached.append(int(value.strip()[:9]))
        else:
            _take(samples, place, depth, key, value)
    names = {gpu: str(at) for at, gpu in enumerate(gpus)} if attached[:1] == [len(gpus)] else {}
    _rename(samples, names)
    times = _metric_times.read(stamps, _TIMES)
    notes = []
    if len(stamps) == 1:
        notes.append(Note("one-moment", "The report is of one moment, without a course over time."))
    return samples.recording(source, NAME, times, notes=notes, meta={"bus_ids": gpus})


def _take(samples: LongSamples, place: _Place, depth: int, key: str, value: str | None) -> None:
    """Move to the section a line opens, or take the sample it holds."""
    while place.sections and place.sections[-1][0] >= depth:
        place.sections.pop()
    if depth <= 4:
        place.mig = place.pid = ""
    if value is None:
        place.sections.append((depth, key))
        return
    value = value.strip()
    path = [name for _, name in place.sections]
    if "MIG Device" in path and key == "GPU Instance ID":
        place.mig = value
    elif "Processes" in path and key == "GPU instance ID":
        place.mig = value if value.isdecimal() else ""
    elif key == "Process ID":
        place.pid = value
        place.sections.append((depth, key))
    elif key == "Name" and "Process ID" in path:
        place.pid = f"{place.pid.split()[0]} {base_name(value)}" if place.pid else ""
    else:
        number, unit, counted = _measured(path, key, value)
        if counted:
            device = f"{place.gpu} GPU-I {place.mig}" if place.mig else place.gpu
            samples.add(
                place.report, Quantity(_counter(path, key, place.pid), unit, device), number
            )


def _measured(path: list[str], key: str, value: str) -> tuple[float, str | None, bool]:
    """The number and unit of a value, and whether it is a measurement at all."""
    found = _MEASURED.fullmatch(value)
    if found:
        return float(found["number"]), _metrics.canonical_unit(found["unit"]), True
    if key == "Performance State" and _PSTATE.fullmatch(value):
        return float(value[1:]), None, True
    where = " / ".join([*path, key])
    is_count = value.isdecimal() and any(word in where for word in _COUNTS)
    return _metrics.number(value), None, is_count


def _counter(path: list[str], key: str, pid: str) -> str:
    if pid:
        return f"{key} [pid {pid}]"
    return " / ".join([*(name for name in path if name != "MIG Device"), key])


def _rename(samples: LongSamples, names: dict[str, str]) -> None:
    """Call GPUs by their number where it is known."""
    if not names:
        return
    renamed = {}
    for quantity, kind in samples.quantities.items():
        bus_id, _, rest = (quantity.device or "").partition(" ")
        device = f"{names.get(bus_id, bus_id)} {rest}".strip()
        renamed[quantity._replace(device=device)] = kind
    samples.quantities = renamed
