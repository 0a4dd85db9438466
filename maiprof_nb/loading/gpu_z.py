"""Sensor logs of TechPowerUp GPU-Z (Windows)."""

from __future__ import annotations

import re

from maiprof_nb.loading import _metric_times, _metrics
from maiprof_nb.loading._long_samples import LongSamples, Quantity
from maiprof_nb.loading._metrics import Dropped
from maiprof_nb.recording import Note, Recording

NAME = "gpu-z"

_MARK = re.compile(rb"\A[\s\0]{0,64}Date\s*,[^\n]{1,4000}\[(?:MHz|W|%|\xb0C|\xc2\xb0C)\]")
_COLUMN = re.compile(r"(?P<name>[^\[\]]{1,80}?) ?\[(?P<unit>[^\]]{1,8})\]")
_HOST = re.compile(r"CPU |System Memory")
_TIMES = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f")


def sniff(data: bytes) -> bool:
    """True if the first line is the padded header ``Date , GPU Clock [MHz] , ...``."""
    return bool(_MARK.match(data[: _metrics.HEAD_BYTES].removeprefix(b"\xef\xbb\xbf")))


def read(data: bytes, source: str) -> Recording:
    """Read the log; the header is written again whenever GPU-Z is started.

    The text is Latin-1 (the degree sign). A name that stands twice becomes ``name (2)``.
    The GPU is called 0, because the log does not say which one it is.
    """
    dropped, samples = Dropped(), LongSamples()
    quantities: list[Quantity] = []
    stamps: list[str] = []
    headers = 0
    for line_number, line in enumerate(_text(data).split("\n"), start=1):
        if not line.strip("\0 \t\r"):
            continue
        cells = [cell.strip(" \t\r\0") for cell in line.rstrip("\r ").removesuffix(",").split(",")]
        if cells[0] == "Date":
            headers += 1
            quantities = _quantities(cells[1:])
            continue
        if len(cells) != len(quantities) + 1:
            dropped.add(line_number, line)
            continue
        for quantity, cell in zip(quantities, cells[1:], strict=True):
            samples.add(len(stamps), quantity, _metrics.number(cell))
        stamps.append(cells[0])
    notes = dropped.notes()
    if headers > 1:
        text = f"Headers between the rows, where the sampler was started again: {headers - 1}."
        notes.append(Note("log-restarted", text, headers - 1))
    return samples.recording(source, NAME, _metric_times.read(stamps, _TIMES), notes=notes)


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _quantities(cells: list[str]) -> list[Quantity]:
    found = [_COLUMN.fullmatch(cell) for cell in cells]
    names = _metrics.unique(
        [match["name"].strip() if match else cell for match, cell in zip(found, cells, strict=True)]
    )
    return [
        Quantity(
            name,
            _metrics.canonical_unit(match["unit"]) if match else None,
            None if _HOST.match(name) else "0",
        )
        for name, match in zip(names, found, strict=True)
    ]
