"""Text that dcgm-exporter serves (Prometheus exposition), scraped once or many times."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from maiprof_nb.loading import _metrics
from maiprof_nb.loading._metrics import Dropped
from maiprof_nb.recording import Recording
from maiprof_nb.tables import SCHEMAS
from maiprof_nb.timebase import NS_PER_MS, NS_PER_S, Clock

NAME = "dcgm-exporter"

_MARK = re.compile(r"^(?:# (?:HELP|TYPE) )?DCGM_[A-Z0-9_]+(?:[ {]|$)", re.MULTILINE)
_HELP = re.compile(r"# HELP (?P<name>\S+) (?P<text>.*)")
_LINE = re.compile(
    r"(?P<name>[A-Za-z_:][\w:]*)(?:\{(?P<labels>.*)\})?\s+(?P<value>\S+)(?:\s+(?P<ms>-?\d+))?\s*"
)
_LABEL = re.compile(r'(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"')
_UNIT_IN_HELP = re.compile(r"\(in ([^)]+)\)")
_UNITS_BY_NAME = (
    (re.compile(r"_PROF_.*(?:ACTIVE|OCCUPANCY)$"), "ratio"),
    (re.compile(r"_UTIL$"), "%"),
    (re.compile(r"_CLOCK$"), "MHz"),
    (re.compile(r"_TEMP$"), "C"),
    (re.compile(r"_POWER_USAGE$"), "W"),
    (re.compile(r"_FB_(?:USED|FREE|TOTAL|RESERVED)$"), "MiB"),
    (re.compile(r"_ENERGY_CONSUMPTION$"), "mJ"),
)


@dataclass
class _Rows:
    names: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)
    ms: list[str | None] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)


def sniff(data: bytes) -> bool:
    """True if a DCGM field stands at the start of a line near the beginning."""
    return bool(_MARK.search(_metrics.head_of(data)))


def read(data: bytes, source: str) -> Recording:
    """Read exposition text; repeated samples of one series are its course over time.

    Only time stamps in the text (ms) make a clock; without them there is an order only.
    """
    dropped = Dropped()
    rows, helps = _parsed(_metrics.text_of(data), dropped)
    frame = pd.DataFrame(
        {
            "counter": pd.Series(rows.names, dtype="str"),
            "labels": pd.Series(rows.labels, dtype="str"),
            "value": _metrics.numbers(rows.cells) if rows.cells else np.empty(0),
            "ms": pd.array([pd.NA if ms is None else int(ms) for ms in rows.ms], dtype="Int64"),
        }
    )
    frame["event"] = np.arange(len(frame))
    frame, clock = _timed(frame, rows, dropped)
    frame["device"] = frame["labels"].map(_devices(frame["labels"].unique()))
    units = {name: unit_of(name, helps.get(name, "")) for name in frame["counter"].unique()}
    blank = _metrics.is_blank(frame["value"].to_numpy())
    lacking = frame.loc[blank | frame["value"].isna(), "counter"].value_counts()
    notes = dropped.notes() + _metrics.blank_note(int(blank.sum()))
    notes += _metrics.missing_note({str(name): int(n) for name, n in lacking.items()})
    kept = frame[~blank & frame["value"].notna()]
    table = SCHEMAS["counters"].frame(
        {
            "event": kept["event"],
            "ts_ns": kept["ts_ns"],
            "device": kept["device"].astype("str").astype("category"),
            "counter": kept["counter"].astype("category"),
            "unit": kept["counter"].map(units).astype("str").astype("category"),
            "value": kept["value"],
        }
    )
    return _metrics.of_table(source, NAME, table, clock, notes=notes)


def _parsed(text: str, dropped: Dropped) -> tuple[_Rows, dict[str, str]]:
    rows, helps = _Rows(), {}
    for line_number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        if line.startswith("#"):
            told = _HELP.match(line)
            if told:
                helps[told["name"]] = told["text"]
            continue
        found = _LINE.fullmatch(line)
        if not found or (np.isnan(_metrics.number(found["value"])) and found["value"] != "NaN"):
            dropped.add(line_number, line)
            continue
        rows.names.append(found["name"])
        rows.labels.append(found["labels"] or "")
        rows.cells.append(found["value"])
        rows.ms.append(found["ms"])
        rows.lines.append(line_number)
    return rows, helps


def _timed(frame: pd.DataFrame, rows: _Rows, dropped: Dropped) -> tuple[pd.DataFrame, Clock]:
    stamped = frame["ms"].notna()
    if not stamped.any():
        ticks = frame.groupby(["counter", "labels"]).cumcount()
        return frame.assign(ts_ns=ticks * NS_PER_S), _metrics.NO_TIME
    for at in np.flatnonzero(~stamped):
        dropped.add(rows.lines[at], f"{rows.names[at]} without a time stamp")
    frame = frame[stamped]
    zero_ms = int(frame["ms"].min())
    times = (frame["ms"] - zero_ms).astype("int64") * NS_PER_MS
    clock = Clock(zero_ms * NS_PER_MS, "time stamps of the exposition, in ms", NS_PER_MS)
    return frame.assign(ts_ns=times), clock


def _devices(label_sets: np.ndarray[tuple[int], np.dtype[np.object_]]) -> dict[str, str | None]:
    """What each set of labels calls its GPU: the index, with host and MIG instance if needed."""
    parsed = {str(text): dict(_LABEL.findall(str(text))) for text in label_sets}
    return dict(zip(parsed, devices_of(list(parsed.values())), strict=True))


def devices_of(label_sets: Sequence[Mapping[str, str]]) -> list[str | None]:
    """What each set of labels calls its GPU; missing where it names none."""
    plain = [
        labels.get("gpu") or labels.get("gpu_id") or labels.get("UUID") for labels in label_sets
    ]
    hosts = [labels.get("Hostname", "") for labels in label_sets]
    several = len({host for host, device in zip(hosts, plain, strict=True) if device}) > 1
    named: list[str | None] = []
    for labels, host, device in zip(label_sets, hosts, plain, strict=True):
        instance = f" GPU-I {labels['GPU_I_ID']}" if labels.get("GPU_I_ID") else ""
        prefix = f"{host}/" if several else ""
        named.append(f"{prefix}{device}{instance}" if device else None)
    return named


def unit_of(name: str, help_text: str = "") -> str | None:
    """The unit of a DCGM field, from its help text or its name."""
    told = _UNIT_IN_HELP.search(help_text)
    if told:
        return _metrics.canonical_unit(told[1])
    if help_text.lower().startswith("ratio"):
        return "ratio"
    return next((unit for pattern, unit in _UNITS_BY_NAME if pattern.search(name)), None)
