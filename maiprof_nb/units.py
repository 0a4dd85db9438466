"""The only place that turns numbers into text for people."""

from __future__ import annotations

import math

_TIME_UNITS = (  # below this many ns, in this unit of so many ns
    (1_000, "ns", 1),
    (1_000_000, "µs", 1_000),
    (1_000_000_000, "ms", 1_000_000),
    (60_000_000_000, "s", 1_000_000_000),
)
_BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def _significant(value: float) -> str:
    """Three significant digits, never in exponent form."""
    value = _rounded(value)
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{digits}f}" if digits else count(value)


def _rounded(value: float) -> float:
    """To three significant digits, or to a whole number where it has more."""
    if value == 0:
        return 0.0
    return round(value, max(0, 2 - math.floor(math.log10(abs(value)))))


def duration(ns: float) -> str:
    """Nanoseconds as text with the unit that fits: ``1.23 ms``, ``2 min 05 s``; ``n/a`` for NaN."""
    if math.isnan(ns):
        return "n/a"
    for limit, unit, unit_ns in _TIME_UNITS:
        if abs(_rounded(ns / unit_ns)) < limit / unit_ns:  # 999.9 ns is 1.00 µs
            return f"{_significant(ns / unit_ns)} {unit}"
    seconds = round(abs(ns) / 1_000_000_000)
    sign = "-" if ns < 0 else ""
    hours, rest = divmod(seconds, 3600)
    if hours:
        return f"{sign}{hours} h {rest // 60:02d} min"
    return f"{sign}{rest // 60} min {rest % 60:02d} s"


def size(count_bytes: float) -> str:
    """Bytes as text in binary units, e.g. ``250 MiB``; ``n/a`` for NaN."""
    if math.isnan(count_bytes):
        return "n/a"
    value = float(count_bytes)
    for unit in _BYTE_UNITS:
        if abs(_rounded(value)) < 1024 or unit == _BYTE_UNITS[-1]:
            break
        value /= 1024
    return f"{_significant(value)} {unit}"


def percent(share: float) -> str:
    """A share between 0 and 1 as text, e.g. ``57.0 %``."""
    return "n/a" if math.isnan(share) else f"{share * 100:.1f} %"


def count(number: float) -> str:
    """A whole number with thousands separated, e.g. ``12 345``."""
    return f"{round(number):,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
