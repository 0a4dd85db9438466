"""What readers of GPU metrics share: cells to numbers, ticks, and the recording itself."""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.recording import Note, Recording
from maiprof_nb.tables import SCHEMAS
from maiprof_nb.timebase import NS_PER_S, Clock

CPU_UTILIZATION = "cpu.utilization"  # of all cores, %: derived wherever a dialect measures it
HEAD_BYTES = 64 * 2**10  # a header stands within it, banner and NUL bytes included
ZONE_UNCERTAINTY_NS = 14 * 3600 * NS_PER_S  # zones reach from -12 h to +14 h
LOCAL_TIME = "local time without a zone, read as UTC"
FIRST_TIME, LAST_TIME = pd.Timestamp(1970, 1, 1), pd.Timestamp(2261, 1, 1)  # fits int64 ns
NO_TIME = Clock(None, "no time stamps; one sample a second assumed", ordered_only=True)

_UNITS = {"MB": "MiB", "seconds": "s", "Celsius": "C", "°C": "C", "percent": "%", "": None}
_WORDS = {"Not Active": "0", "Active": "1"}
_NUMBER = re.compile(r"(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?: (?P<unit>\S+))?")

_MAX_CELL = 64  # a longer cell is no number; regular expressions stay bounded
_BLANKS = (  # DCGM's "no value": from these numbers upwards, by type of the field
    (0x7FFFFFF0, 0x7FFFFFFF),
    (2.0**47, 2.0**47 + 15),
    (float(0x7FFFFFFFFFFFFFF0), float(0x7FFFFFFFFFFFFFFF)),
)

Floats = npt.NDArray[np.float64]


def text_of(data: bytes) -> str:
    """The text of a log; PowerShell redirects into UTF-16, everything else into UTF-8."""
    utf16 = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    return data.decode("utf-16" if utf16 else "utf-8-sig", "replace")


def head_of(data: bytes) -> str:
    """The text near the beginning of a log, without the NUL bytes some have."""
    return text_of(data[:HEAD_BYTES]).replace("\0", "")


def lines(data: bytes) -> Iterator[tuple[int, str]]:
    """Numbered lines of a log that hold something, without NUL bytes."""
    for number, line in enumerate(text_of(data).splitlines(), start=1):
        held = line.replace("\0", "")
        if held.strip():
            yield number, held


def canonical_unit(text: str) -> str | None:
    """One spelling a unit; None where there is none. nvidia-smi writes MB for MiB."""
    return _UNITS.get(text, text)


@dataclass
class Dropped:
    """Lines that could not be read."""

    count: int = 0
    example: str = ""

    def add(self, line_number: int, text: str) -> None:
        """Count one line, keeping the first as the example."""
        if not self.count:
            shown = text.strip()[:60]
            self.example = f"the first is line {line_number}: {shown!r}"
        self.count += 1

    def notes(self) -> list[Note]:
        """The note on them, if any."""
        if not self.count:
            return []
        return [
            Note("rows-dropped", f"{self.count} lines are no samples; {self.example}.", self.count)
        ]


@dataclass
class Samples:
    """Rows of one file that share their columns.

    Parameters
    ----------
    counters : list of (name, unit)
        What each column of `cells` is.
    """

    counters: list[tuple[str, str | None]]
    events: list[int] = field(default_factory=list)
    devices: list[str | None] = field(default_factory=list)
    cells: list[Sequence[str]] = field(default_factory=list)

    def values(self) -> Floats:
        """The cells as numbers, one row a sample; not a number where missing."""
        shape = (len(self.cells), len(self.counters))
        if 0 in shape:
            return np.empty(shape)
        columns = zip(*self.cells, strict=True)
        return np.column_stack([numbers(column) for column in columns]).reshape(shape)


def numbers(cells: Sequence[str]) -> Floats:
    """Text such as ``34 %``, ``0x1F``, ``P0``, ``Not Active`` as numbers, else not a number."""
    different, inverse = distinct(cells)
    return np.array([number(cell) for cell in different], dtype=np.float64)[inverse]


def distinct(cells: Sequence[str]) -> tuple[list[str], npt.NDArray[np.intp]]:
    """The different cells, and which of them each cell is.

    Not through numpy text, whose every row is as wide as the widest cell.
    """
    codes, different = pd.factorize(np.array([*cells, None], dtype=object)[:-1])
    return [str(cell) for cell in different], codes


def number(cell: str) -> float:
    """One cell as a finite number; not a number where it holds none."""
    if len(cell) > _MAX_CELL:
        return math.nan
    text = _WORDS.get(cell.strip(), cell.strip())
    if re.fullmatch(r"0x[0-9a-fA-F]{1,16}", text):
        return float(int(text, 16))
    found = _NUMBER.fullmatch(text.removeprefix("P"))
    value = float(found["number"]) if found else math.nan
    return value if math.isfinite(value) else math.nan


def is_blank(values: Floats | float) -> npt.NDArray[np.bool_]:
    """Where DCGM wrote its mark for "no value"."""
    values = np.asarray(values, dtype=np.float64)
    blank = np.zeros(values.shape, dtype=np.bool_)
    for low, high in _BLANKS:
        blank |= (values >= low) & (values <= high)
    return blank


def blank_note(count: int) -> list[Note]:
    """The note on DCGM's marks for "no value", if any."""
    text = f'{count} values are DCGM\'s mark for "not supported" and were left out.'
    return [Note("blank-values", text, count)] if count else []


def split(line: str) -> list[str]:
    """Cells of one line of comma-separated text, without the blanks round them."""
    if '"' in line:
        try:
            found = next(csv.reader([line], skipinitialspace=True), [])
            return [cell.strip() for cell in found]
        except csv.Error:  # a cell beyond the module's limit
            pass
    return [cell.strip() for cell in line.split(",")]


def has_unit(cell: str) -> bool:
    """True for a number followed by its unit."""
    found = _NUMBER.fullmatch(cell.strip()[:_MAX_CELL])
    return bool(found and found["unit"])


def seen_before(devices: Sequence[Any]) -> npt.NDArray[np.int64]:
    """How often each device was seen before, which numbers the samplings."""
    names = pd.Series(list(devices), dtype="str")
    return np.asarray(names.groupby(names, dropna=False).cumcount(), dtype=np.int64)


def ticks(devices: Sequence[Any]) -> npt.NDArray[np.int64]:
    """How often each device was seen before, as ns at one sample a second."""
    return seen_before(devices) * NS_PER_S


def unique(names: Sequence[str]) -> list[str]:
    """Names of columns, the second of one name as ``name (2)``."""
    found: Counter[str] = Counter()
    told_apart = []
    for name in names:
        found[name] += 1
        told_apart.append(name if found[name] == 1 else f"{name} ({found[name]})")
    return told_apart


def local_times(texts: Sequence[str], formats: Sequence[str]) -> pd.Series[Any]:
    """Epoch ns of stamps without a zone, read as UTC; missing where none of `formats` fits."""
    text = pd.Series(texts, dtype="str")
    found = pd.Series(pd.NaT, text.index, dtype="datetime64[ns]")
    for pattern in formats:
        parsed = pd.to_datetime(text[found.isna()], format=pattern, errors="coerce")
        fits = parsed.between(FIRST_TIME, LAST_TIME)
        found = found.fillna(parsed.where(fits).astype("datetime64[ns]"))
    return found.astype("int64").astype("Int64").mask(found.isna())


def local_clock(zero_ns: int) -> Clock:
    """The clock of stamps without a zone."""
    return Clock(zero_ns, LOCAL_TIME, ZONE_UNCERTAINTY_NS)


def table(samples: Samples, ts_ns: npt.NDArray[np.int64]) -> tuple[pd.DataFrame, dict[str, int]]:
    """The table `counters` of these rows, and how many samples each counter lacks."""
    values = samples.values()
    row, column = np.nonzero(~np.isnan(values))
    names = [name for name, _ in samples.counters]
    units = [unit for _, unit in samples.counters]
    frame = SCHEMAS["counters"].frame(
        {
            "event": np.array(samples.events, dtype=np.int64)[row],
            "ts_ns": ts_ns[row],
            "device": pd.Series(samples.devices, dtype="str").astype("category").iloc[row],
            "counter": _taken(names, column),
            "unit": _taken(units, column),
            "value": values[row, column],
        }
    )
    lacking = len(values) - np.bincount(column, minlength=len(names))
    return frame, {name: int(n) for name, n in zip(names, lacking, strict=True) if n}


def _taken(texts: Sequence[str | None], positions: npt.NDArray[np.int64]) -> pd.Series[Any]:
    """`texts` at `positions` as a category."""
    return pd.Series(list(texts), dtype="str").astype("category").iloc[positions]


def missing_note(lacking: Mapping[str, int]) -> list[Note]:
    """The note on samples that say they have no value."""
    total = sum(lacking.values())
    if not total:
        return []
    names = sorted(lacking, key=lambda name: -lacking[name])
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return [Note("missing-values", f"{total} samples have no value: {shown}.", total)]


def recording(
    source: str,
    name: str,
    parts: Sequence[Samples],
    stamps: tuple[npt.NDArray[np.int64], Clock],
    *,
    notes: Sequence[Note],
    meta: dict[str, Any] | None = None,
) -> Recording:
    """One recording of all rows, `stamps` being the times of all of them and their clock."""
    ts_ns, clock = stamps
    frames: list[pd.DataFrame] = []
    lacking: Counter[str] = Counter()
    at = 0
    for part in parts:
        frame, missing = table(part, ts_ns[at : at + len(part.events)])
        at += len(part.events)
        lacking.update(missing)
        if len(frame):
            frames.append(frame)
    return of_table(
        source, name, _joined(frames), clock, notes=[*notes, *missing_note(lacking)], meta=meta
    )


def _joined(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    schema = SCHEMAS["counters"]
    if len(frames) < 2:
        return frames[0] if frames else schema.empty()
    texts = dict.fromkeys(("device", "counter", "unit"), "str")
    whole = pd.concat([frame.astype(texts) for frame in frames], ignore_index=True)
    return schema.frame({name: whole[name] for name in schema.column_names})


def of_table(
    source: str,
    name: str,
    counters: pd.DataFrame,
    clock: Clock,
    *,
    notes: Sequence[Note],
    meta: dict[str, Any] | None = None,
    derived: int = 0,
) -> Recording:
    """One recording of the table `counters`, of whose rows `derived` are not in the file."""
    if counters.empty:
        notes = [*notes, Note("no-samples", "The file holds no sample with a value.")]
    devices = [str(device) for device in counters["device"].dropna().unique()]
    return Recording(
        source=source,
        kind="metrics",
        format=name,
        tables={"counters": counters},
        clock=clock,
        notes=tuple(notes),
        events={"sample": len(counters) - derived},
        meta={"devices": devices, **(meta or {})},
    )
