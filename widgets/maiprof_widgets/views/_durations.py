"""What people type for a time -> ns, exactly."""

from __future__ import annotations

import re
from decimal import Decimal

from maiprof_nb.errors import UsageError

_NS = {
    "d": 86_400_000_000_000,
    "h": 3_600_000_000_000,
    "min": 60_000_000_000,
    "s": 1_000_000_000,
    "ms": 1_000_000,
    "µs": 1_000,
    "us": 1_000,
    "ns": 1,
}
_MOST_NS = 10**18  # some thirty years
_PART = re.compile(r"(?P<number>\d{1,18}(?:\.\d{1,18})?)\s*(?P<unit>d|h|min|s|ms|us|µs|ns)\b\s*")
_MINUS = "-\N{MINUS SIGN}\N{EN DASH}"


def typed_duration(text: str) -> int:
    """Nanoseconds of ``+2 h``, ``-13.4 s``, ``1 h 30 min``; a number alone is none.

    Raises
    ------
    UsageError
        If it is not understood, or beyond some thirty years.
    """
    plain = text.strip().replace("\N{GREEK SMALL LETTER MU}", "µ")
    negative = plain[:1] in _MINUS if plain else False
    rest = plain[1:].lstrip() if plain[:1] in f"+{_MINUS}" else plain
    total, at = Decimal(0), 0
    while at < len(rest):
        part = _PART.match(rest, at)
        if part is None:
            break
        total += Decimal(part["number"]) * _NS[part["unit"]]
        at = part.end()
    if not rest or at < len(rest) or total > _MOST_NS:
        raise UsageError(
            f"{text.strip()[:40]!r} is no time to move by",
            remedy="Write a number and a unit (d, h, min, s, ms, us, ns): +2 h, -13.4 s, "
            "1 h 30 min",
        )
    exact = int(total.to_integral_value())
    return -exact if negative else exact
