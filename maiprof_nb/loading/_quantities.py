"""Names of columns in tables people make themselves -> unit, device, and what is time."""

from __future__ import annotations

import re
from collections.abc import Sequence

from maiprof_nb.loading._long_samples import Quantity

_BRACKETED = re.compile(r"[^\[\]()]{1,80}[\[(](?P<unit>[^\])]{1,8})[\])]")
_BY_LAST_WORD = {
    **dict.fromkeys(("watts", "watt", "w"), "W"),
    "mw": "mW", "kw": "kW", "wh": "Wh", "kwh": "kWh",
    **dict.fromkeys(("joules", "joule", "j"), "J"), "mj": "mJ",
    **dict.fromkeys(("percent", "pct", "perc"), "%"),
    "mb": "MB", "mib": "MiB", "gb": "GB", "gib": "GiB", "kb": "KB", "kib": "KiB", "bytes": "B",
    "mhz": "MHz", "ghz": "GHz", "rpm": "RPM", "v": "V", "mv": "mV", "kg": "kg",
    **dict.fromkeys(("celsius", "c", "degc"), "C"),
}  # fmt: skip
_KNOWN_UNITS = frozenset({*_BY_LAST_WORD.values(), "%", "°C", "MB/s", "GB/s", "B/s"})
_BY_WORD = (
    (re.compile(r"util(?:i[sz]ation)?$"), "%"),
    (re.compile(r"temp(?:erature)?$"), "C"),
)
_TIMES = frozenset(
    {
        "timestamp", "time", "datetime", "date_time", "date", "ts", "unix_time", "epoch_s",
        "timestamp_s", "timestamp_ms", "timestamp_us", "timestamp_ns", "time_s", "ts_ns",
        "elapsed", "elapsed_s", "elapsed_seconds", "wall_time", "utc",
    }
)  # fmt: skip
_DEVICES = ("gpu", "gpu_id", "gpu_index", "device", "device_id", "index")
_GPU_COLUMN = re.compile(r"gpu[_ ]?(?P<number>\d{0,3})(?:[_ .:(\[]|$)", re.IGNORECASE)
_CPU_LOAD = re.compile(
    r"(?:system_|total_|host_)?cpu(?:_(?:util(?:i[sz]ation)?|usage|load|total))?(?:_(?:percent|pct))?"
)


def time_column(names: Sequence[str]) -> str | None:
    """The column that says when, if there is one."""
    return next((name for name in names if name.strip().lower() in _TIMES), None)


def device_column(names: Sequence[str]) -> str | None:
    """The column that says which GPU, if there is one."""
    lower = {name.strip().lower(): name for name in names}
    return next((lower[name] for name in _DEVICES if name in lower), None)


def unit_of(name: str) -> str | None:
    """The unit a column's name states: in brackets, or as its last word."""
    text = name.strip()
    bracketed = _BRACKETED.fullmatch(text)
    if bracketed and bracketed["unit"] in _KNOWN_UNITS:
        return bracketed["unit"].replace("°C", "C")
    words = re.split(r"[_\s.]+", text.lower())
    if len(words) > 1 and words[-1] in _BY_LAST_WORD:
        return _BY_LAST_WORD[words[-1]]
    return next((unit for pattern, unit in _BY_WORD if pattern.search(text.lower())), None)


def quantity_of(name: str, device: str | None = None) -> Quantity:
    """What a column measures; `device` is that of its row, else the name may say one."""
    if device is None:
        found = _GPU_COLUMN.match(name.strip())
        device = (found["number"] or "0") if found else None
    return Quantity(name.strip(), unit_of(name), device)


def names_a_gpu_without_number(name: str) -> bool:
    """True for ``gpu_power_w``: of a GPU, but not of which."""
    found = _GPU_COLUMN.match(name.strip())
    return bool(found and not found["number"])


def is_cpu_load(name: str) -> bool:
    """True for the utilisation of all cores in %, as psutil and loggers call it."""
    plain = re.sub(r"\s*[\[(]%[\])]$", "_percent", name.strip().lower()).replace(" ", "_")
    return bool(_CPU_LOAD.fullmatch(plain)) and (unit_of(name) == "%" or plain == "cpu_usage")
