"""``nvidia-smi --query-gpu=... --format=csv`` logs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.errors import LoadError
from maiprof_nb.loading import _metrics
from maiprof_nb.loading._metrics import Dropped, Samples
from maiprof_nb.recording import Note, Recording
from maiprof_nb.timebase import Clock

NAME = "nvidia-smi-query"

_TIME_FORMATS = ("%Y/%m/%d %H:%M:%S.%f", "%Y/%m/%d %H:%M:%S")
_FIELD = re.compile(r"(?P<name>[A-Za-z][\w.]*)(?: \[(?P<unit>[^\]]*)\])?")
_GPU_FIELD = re.compile(
    r"(?:utilization|memory|temperature|power|clocks|fan|pcie|ecc|encoder|enforced|module)\.\w"
    r"|clocks_(?:event|throttle)_reasons|pstate$|index$|compute_cap$"
)
_PROCESS_FIELDS = frozenset({"pid", "process_name", "used_gpu_memory", "used_memory"})
_DEVICE_FIELDS = ("index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "name", "gpu_name")
_DESCRIBING = re.compile(  # numbers in these say what the card is, not what it does
    r"timestamp|index|count|name|gpu_name|serial|gpu_serial|uuid|gpu_uuid|hostname|compute_cap"
    r"|driver_version|kmd_version|vbios_version|pci\..*|gpu_bus_id|inforom\..*|platform\..*"
    r"|vgpu_.*|fabric\..*|driver_model\..*"
)
_COMMON_ROWS = 10
_CELSIUS = re.compile(r"temperature\.")


@dataclass
class _Section:
    """A header and the rows under it."""

    names: list[str]
    units: list[str | None]
    rows: list[list[str]] = field(default_factory=list)
    events: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    def column(self, name: str) -> list[str] | None:
        """The cells of one field, or None where it was not asked for."""
        if name not in self.names:
            return None
        at = self.names.index(name)
        return [row[at] for row in self.rows]


def fields(cells: Sequence[str]) -> list[tuple[str, str]] | None:
    """Names and units if `cells` is the header of a GPU query, else None."""
    found = [_FIELD.fullmatch(cell.strip()) for cell in cells]
    if not all(found):
        return None
    names = [(match["name"], match["unit"] or "") for match in found if match]
    plain = {name for name, _ in names}
    if plain & _PROCESS_FIELDS or not any(_GPU_FIELD.match(name) for name in plain):
        return None
    return names if len(names) > 1 or names[0][1] else None


def sniff(data: bytes) -> bool:
    """True if a header of GPU fields stands near the beginning, perhaps after a banner."""
    return any(fields(line.split(",")) for line in _metrics.head_of(data).splitlines())


def read(data: bytes, source: str) -> Recording:
    """Read a query log.

    Text fields (driver version, modes) are no counters; hex masks, P-states and
    Active / Not Active are numbers. A log without the field ``timestamp`` has an order only.

    Raises
    ------
    LoadError
        If there is no header of GPU fields.
    """
    dropped = Dropped()
    sections, before = _sections(data, dropped)
    if not sections:
        raise LoadError(
            "has no header of nvidia-smi query fields",
            where=source,
            remedy="Record with --format=csv, without noheader",
        )
    notes: list[Note] = []
    nuls = _metrics.text_of(data).count("\0")
    if nuls:
        notes.append(Note("nul-bytes", f"{nuls} NUL bytes between the lines were removed.", nuls))
    if before:
        text = f"{before} lines before the header (the table nvidia-smi prints) were skipped."
        notes.append(Note("banner-skipped", text, before))
    for section in sections:
        _drop_broken(section, dropped)
    devices, device_notes = _devices(sections)
    parts = []
    at = 0
    for section in sections:
        parts.append(_samples(section, devices[at : at + len(section.rows)]))
        at += len(section.rows)
    notes += device_notes + dropped.notes()
    stamps = _times(sections, devices)
    return _metrics.recording(source, NAME, parts, stamps, notes=notes, meta=_meta(sections))


def _lines(data: bytes) -> Iterator[tuple[int, str]]:
    """Numbered lines that hold something; NUL bytes part what two writers wrote."""
    for number, line in enumerate(_metrics.text_of(data).splitlines(), start=1):
        for piece in line.split("\0"):
            if piece.strip():
                yield number, piece


def _sections(data: bytes, dropped: Dropped) -> tuple[list[_Section], int]:
    """Headers with their rows, and how many lines stand before the first header."""
    sections: list[_Section] = []
    before = event = 0
    for line_number, line in _lines(data):
        cells = [cell.strip() for cell in line.split(",")]  # nvidia-smi quotes nothing
        names = fields(cells)
        if names and not (sections and sections[-1].names == [name for name, _ in names]):
            units = [_unit(name, unit) for name, unit in names]
            sections.append(_Section([name for name, _ in names], units))
        elif names:
            continue  # the same header again: the command was restarted
        elif not sections:
            before += 1
        elif len(cells) != len(sections[-1].names):
            dropped.add(line_number, line)
        else:
            sections[-1].rows.append(cells)
            sections[-1].events.append(event)
            sections[-1].lines.append(line_number)
            event += 1
    return sections, before


def _unit(name: str, unit: str) -> str | None:
    return _metrics.canonical_unit(unit) or ("C" if _CELSIUS.match(name) else None)


def _drop_broken(section: _Section, dropped: Dropped) -> None:
    """Leave out rows pieced together from two: a cell that is no value of its column."""
    good = np.ones(len(section.rows), dtype=bool)
    for at, (name, unit) in enumerate(zip(section.names, section.units, strict=True)):
        if not section.rows:
            continue
        distinct, inverse = _metrics.distinct([row[at] for row in section.rows])
        if name == "timestamp":
            fits = _metrics.local_times(distinct, _TIME_FORMATS).notna().to_numpy()
        elif name in ("name", "gpu_name"):
            fits = ~_torn(distinct, np.bincount(inverse))
        elif name == "index":
            fits = np.array([cell.isdecimal() for cell in distinct])
        elif unit:
            fits = np.array([_is_value_or_missing(cell) for cell in distinct])
            written = np.array([_metrics.has_unit(cell) for cell in distinct])
            if written.any() and not _CELSIUS.match(name):  # with units: a bare number is a stump
                fits &= written | np.isnan([_metrics.number(cell) for cell in distinct])
        else:
            continue
        good &= fits[inverse]
    for at in np.flatnonzero(~good).tolist():
        dropped.add(section.lines[at], ", ".join(section.rows[at]))
    section.rows = [row for row, keep in zip(section.rows, good, strict=True) if keep]
    section.events = [event for event, keep in zip(section.events, good, strict=True) if keep]


def _torn(names: Sequence[str], counts: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Names met once that begin like one common name and end like one: two rows run together."""
    common = [name for name, n in zip(names, counts.tolist(), strict=True) if n >= _COMMON_ROWS]
    starts, ends = {name[:4] for name in common}, {name[-4:] for name in common}
    alike = np.array([n[:4] in starts and n[-4:] in ends for n in names], dtype=np.bool_)
    return np.asarray(alike & (counts == 1), dtype=np.bool_)


def _is_value_or_missing(cell: str) -> bool:
    missing = not cell or cell.startswith("[") or cell in ("N/A", "ERR!", "Unknown Error")
    return missing or not np.isnan(_metrics.number(cell))


def _devices(sections: Sequence[_Section]) -> tuple[list[str | None], list[Note]]:
    """What each row's card is called: its index, else its UUID or bus id, else its model."""
    ids: list[str | None] = []
    names: list[str] = []
    for section in sections:
        key = next((name for name in _DEVICE_FIELDS if name in section.names), "")
        ids += section.column(key) or [None] * len(section.rows)
        names += section.column("name") or section.column("gpu_name") or [""] * len(section.rows)
    pairs = pd.DataFrame({"id": pd.Series(ids, dtype="str"), "name": pd.Series(names, dtype="str")})
    models = pairs.drop_duplicates().groupby("id")["name"].size()
    mixed = set(models.index[models > 1])
    if mixed:
        told_apart = [f"{i} ({n})" if i in mixed else i for i, n in zip(ids, names, strict=True)]
        shown = ", ".join(sorted(mixed))
        text = f"Several models of GPU stand under index {shown}; the model was added to it."
        return told_apart, [Note("devices-mixed", text, len(mixed))]
    if ids and None in ids:
        text = "The log does not say which GPU a row belongs to; all were taken to be one."
        return [i or "0" for i in ids], [Note("device-unknown", text)]
    return ids, []


def _times(
    sections: Sequence[_Section], devices: Sequence[str | None]
) -> tuple[npt.NDArray[np.int64], Clock]:
    columns = [section.column("timestamp") for section in sections]
    texts = [text for column in columns for text in column or []]
    if len(texts) != len(devices) or not texts:
        return _metrics.ticks(devices), _metrics.NO_TIME
    stamps = _metrics.local_times(texts, _TIME_FORMATS).to_numpy("int64")
    zero_ns = int(stamps.min())
    return stamps - zero_ns, _metrics.local_clock(zero_ns)


def _samples(section: _Section, devices: Sequence[str | None]) -> Samples:
    """The columns that are counters: those with a unit, or with a number anywhere."""
    chosen = [
        at
        for at, (name, unit) in enumerate(zip(section.names, section.units, strict=True))
        if not _DESCRIBING.fullmatch(name)
        and (
            unit
            or any(
                not np.isnan(_metrics.number(cell)) for cell in {row[at] for row in section.rows}
            )
        )
    ]
    return Samples(
        counters=[(section.names[at], section.units[at]) for at in chosen],
        events=section.events,
        devices=list(devices),
        cells=[[row[at] for at in chosen] for row in section.rows],
    )


def _meta(sections: Sequence[_Section]) -> dict[str, list[str]]:
    """Models and driver as the log states them."""
    said: dict[str, list[str]] = {}
    for name in ("name", "driver_version"):
        values = {cell for section in sections for cell in section.column(name) or []}
        if values:
            said[name] = sorted(values)
    return said
