"""tegrastats logs of NVIDIA Jetson boards."""

from __future__ import annotations

import re

from maiprof_nb.loading import _metric_times, _metrics
from maiprof_nb.loading._long_samples import LongSamples, Quantity
from maiprof_nb.loading._metrics import Dropped
from maiprof_nb.recording import Recording

NAME = "tegrastats"

_MARK = re.compile(
    r"^(?:\d\d-\d\d-\d{4} \d\d:\d\d:\d\d )?RAM \d{1,9}/\d{1,9}MB\b[^\n]{0,2000}?\bCPU \[",
    re.MULTILINE,
)
_STAMP = re.compile(r"\s*(?P<stamp>\d\d-\d\d-\d{4} \d\d:\d\d:\d\d) (?=RAM )")
_TIME = "%m-%d-%Y %H:%M:%S"
_MEMORY = re.compile(
    r"\b(?P<name>RAM|SWAP|IRAM) (?P<used>\d{1,9})/(?P<total>\d{1,9})(?P<unit>[kM])B\b"
)
_CORES = re.compile(r"\bCPU \[(?P<cores>[^\]]{1,2000})\]")
_CORE = re.compile(r"(?P<load>\d{1,3})%(?:@(?P<mhz>\d{1,5}))?")
_ENGINE = re.compile(
    r"\b(?P<name>[A-Z][A-Z0-9]{1,15}_FREQ) (?P<load>\d{1,3})%"
    r"(?:@\[?(?P<mhz>\d{1,5}(?:,\d{1,5})*)\]?)?"
)
_CLOCK = re.compile(r"\b(?P<name>(?:NV[A-Z]{2,6}\d?|VIC|OFA|APE|MSENC)) (?P<mhz>\d{1,5})(?= |$)")
_HEAT = re.compile(r"\b(?P<name>[A-Za-z][A-Za-z0-9_]{0,15})@(?P<c>-?\d{1,3}(?:\.\d{1,3})?)C\b")
_RAIL = re.compile(
    r"\b(?P<name>[A-Z][A-Z0-9_]{2,31}) (?P<now>\d{1,7})(?:mW)?/(?P<mean>\d{1,7})(?:mW)?(?= |$)"
)
_GPU = "0"  # a Jetson has one
_MAX_LINE = 8192


def sniff(data: bytes) -> bool:
    """True if a line of tegrastats stands near the beginning."""
    return bool(_MARK.search(_metrics.head_of(data)))


def read(data: bytes, source: str) -> Recording:
    """Read the log: memory, cores, engines, temperatures and power rails.

    A rail's first number is its power now (mW), the second, ``... average``, the mean since
    tegrastats began. Cores that are off have no sample. Older versions print no time, which
    leaves an order only.
    """
    dropped, samples = Dropped(), LongSamples()
    stamps: list[str] = []
    for line_number, line in _metrics.lines(data):
        if len(line) > _MAX_LINE or "RAM " not in line:
            dropped.add(line_number, line)
            continue
        stamp = _STAMP.match(line)
        _memory(samples, len(stamps), line)
        _cores(samples, len(stamps), line)
        _engines(samples, len(stamps), line)
        _power(samples, len(stamps), line)
        stamps.append(stamp["stamp"] if stamp else "")
    times = (
        _metric_times.read(stamps, (_TIME,))
        if any(stamps)
        else _metric_times.ordered(range(len(stamps)))
    )
    return samples.recording(source, NAME, times, notes=dropped.notes())


def _memory(samples: LongSamples, event: int, line: str) -> None:
    for found in _MEMORY.finditer(line):
        unit = "KiB" if found["unit"] == "k" else "MiB"  # written kB and MB
        samples.add(event, Quantity(found["name"], unit), float(found["used"]))
        samples.add(event, Quantity(f"{found['name']} total", unit), float(found["total"]))


def _cores(samples: LongSamples, event: int, line: str) -> None:
    found = _CORES.search(line)
    loads = []
    for number, text in enumerate(found["cores"].split(",") if found else ()):
        core = _CORE.fullmatch(text)
        if not core:
            continue
        loads.append(float(core["load"]))
        samples.add(event, Quantity(f"CPU[{number}]", "%"), loads[-1])
        if core["mhz"]:
            samples.add(event, Quantity(f"CPU[{number}] frequency", "MHz"), float(core["mhz"]))
    if loads:
        samples.add_cpu(event, sum(loads) / len(loads))


def _engines(samples: LongSamples, event: int, line: str) -> None:
    for found in _ENGINE.finditer(line):
        device = _GPU if found["name"] == "GR3D_FREQ" else None
        samples.add(event, Quantity(found["name"], "%", device), float(found["load"]))
        clocks = (found["mhz"] or "").split(",") if found["mhz"] else []
        for at, mhz in enumerate(clocks):
            place = f"[{at}]" if len(clocks) > 1 else ""
            name = f"{found['name']} frequency{place}"
            samples.add(event, Quantity(name, "MHz", device), float(mhz))
    for found in _CLOCK.finditer(line):
        samples.add(event, Quantity(f"{found['name']} frequency", "MHz"), float(found["mhz"]))
    for found in _HEAT.finditer(line):
        device = _GPU if found["name"].lower() == "gpu" else None
        quantity = Quantity(f"temperature {found['name']}", "C", device)
        samples.add(event, quantity, float(found["c"]))


def _power(samples: LongSamples, event: int, line: str) -> None:
    for found in _RAIL.finditer(line):
        name = found["name"]
        device = _GPU if "GPU" in name else None
        samples.add(event, Quantity(name, "mW", device), float(found["now"]))
        samples.add(event, Quantity(f"{name} average", "mW", device), float(found["mean"]))
