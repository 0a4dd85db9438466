"""``dcgmi dmon`` logs."""

from __future__ import annotations

import re

from maiprof_nb.loading import _metrics
from maiprof_nb.loading._metrics import Dropped, Samples
from maiprof_nb.recording import Recording

NAME = "dcgmi-dmon"

_HEADER = re.compile(r"^[ \t]*#[ \t]*Entity\b(?P<names>.*)$", re.MULTILINE)
_ROW = re.compile(r"\s*(?P<kind>[A-Za-z][A-Za-z-]*)\s+(?P<id>\d+)\s+(?P<cells>\S.*)")
_UNIT_ROW = re.compile(r"\s*I[dD](?:\s+(?P<units>.*))?")
_UNITS = {  # DCGM's short names; the line of units is often empty or out of step
    **dict.fromkeys(
        ("GRACT", "SMACT", "SMOCC", "TENSO", "DRAMA", "FP64A", "FP32A", "FP16A", "INTAC"), "ratio"
    ),
    **dict.fromkeys(("IMMAA", "HMMAA", "DFMAA"), "ratio"),
    **dict.fromkeys(("GPUTL", "MCUTL", "ENCUT", "DECUT"), "%"),
    **dict.fromkeys(("TMPTR", "MMTMP"), "C"),
    **dict.fromkeys(("SMCLK", "MMCLK"), "MHz"),
    **dict.fromkeys(("FBUSD", "FBFRE", "FBTTL"), "MiB"),
    **dict.fromkeys(("NVLTX", "NVLRX", "PCITX", "PCIRX"), "B/s"),
    "POWER": "W",
    "TOTEC": "mJ",
}


def sniff(data: bytes) -> bool:
    """True if the line ``# Entity ...`` stands near the beginning."""
    return bool(_HEADER.search(_metrics.head_of(data)))


def read(data: bytes, source: str) -> Recording:
    """Read a dcgmi dmon log, which has an order of samples only.

    A GPU is named by its number, other entities (MIG instances, switches) by kind and number.
    """
    dropped = Dropped()
    sections: list[Samples] = []
    event = 0
    for line_number, line in _metrics.lines(data):
        header = _HEADER.match(line)
        if header:
            names = header["names"].split()
            if not sections or [name for name, _ in sections[-1].counters] != names:
                sections.append(Samples([(name, _UNITS.get(name)) for name in names]))
            continue
        units = _UNIT_ROW.fullmatch(line)
        if units:
            _take_units(sections, (units["units"] or "").split())
            continue
        row = _ROW.fullmatch(line)
        cells = row["cells"].split() if row else []
        if not row or not sections or len(cells) != len(sections[-1].counters):
            dropped.add(line_number, line)
            continue
        sections[-1].events.append(event)
        sections[-1].devices.append(
            row["id"] if row["kind"] == "GPU" else f"{row['kind']} {row['id']}"
        )
        sections[-1].cells.append(cells)
        event += 1
    ts_ns = _metrics.ticks([device for part in sections for device in part.devices])
    return _metrics.recording(
        source, NAME, sections, (ts_ns, _metrics.NO_TIME), notes=dropped.notes()
    )


def _take_units(sections: list[Samples], units: list[str]) -> None:
    """Units from their line for names without a known one, if the line has them all."""
    if sections and len(units) == len(sections[-1].counters):
        sections[-1].counters = [
            (name, known or _metrics.canonical_unit(unit.strip("()")))
            for (name, known), unit in zip(sections[-1].counters, units, strict=True)
        ]
