"""Time stamps of metrics logs: text in many spellings -> ns and a clock."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.loading import _metrics
from maiprof_nb.timebase import NS_PER_S, Clock

_EPOCH_SCALES = (  # a number below this is since 1970 in units of so many ns
    (10**11, NS_PER_S, "s"),
    (10**14, 10**6, "ms"),
    (10**17, 10**3, "us"),
    (2**63, 1, "ns"),
)
_FIRST_EPOCH_S = 10**8  # smaller numbers (before 1973) are seconds since the log's own start
_ZONE = re.compile(r"(?:[Zz]|UTC|[+-]\d\d:?\d\d)\s*$")
_MAX_TEXT = 40  # no stamp is longer


@dataclass(frozen=True)
class Stamps:
    """When each row was written.

    Parameters
    ----------
    ns : Series of Int64
        One a row; missing where the text is no time.
    origin : str
        What the times are, for people.
    uncertainty_ns : int or None
        How far off the wall clock may be.
    wall : bool
        True when `ns` counts from 1970-01-01 UTC.
    ordered_only : bool
        True when `ns` is only an order.
    """

    ns: pd.Series[Any]
    origin: str
    uncertainty_ns: int | None = None
    wall: bool = True
    ordered_only: bool = False

    def placed(self) -> tuple[pd.Series[Any], Clock]:
        """Times from the earliest one, and the clock that says when that was."""
        zero_ns = int(self.ns.min()) if self.ns.notna().any() else 0
        epoch_ns = zero_ns if self.wall else None
        clock = Clock(epoch_ns, self.origin, self.uncertainty_ns, self.ordered_only)
        return self.ns - zero_ns, clock


def read(texts: Sequence[str], formats: Sequence[str] = ()) -> Stamps:
    """Stamps in one of `formats` (local time), as numbers since 1970, or as ISO 8601."""
    texts = [text.strip() if len(text) <= _MAX_TEXT else "" for text in texts]
    if formats:
        return local(_metrics.local_times(texts, formats))
    numbers = [_decimal(text) for text in texts]
    if sum(number is not None for number in numbers) * 2 > len(numbers):
        return _counted(numbers)
    return _iso(texts)


def local(ns: pd.Series[Any]) -> Stamps:
    """Stamps without a zone."""
    return Stamps(ns, _metrics.LOCAL_TIME, _metrics.ZONE_UNCERTAINTY_NS)


def ordered(ticks: Iterable[int] | npt.NDArray[np.int64]) -> Stamps:
    """No stamps: the number of the tick each row belongs to, as if one a second."""
    ns = pd.Series(np.asarray([*ticks], dtype=np.int64) * NS_PER_S, dtype="Int64")
    return Stamps(ns, _metrics.NO_TIME.origin, wall=False, ordered_only=True)


def of_datetimes(times: pd.Series[Any]) -> Stamps:
    """Stamps that were stored as times, with or without a zone."""
    zoned = getattr(times.dt, "tz", None) is not None
    plain = times.dt.tz_convert("UTC").dt.tz_localize(None) if zoned else times
    stamps = _ns(plain)
    return Stamps(stamps, "times with a zone", NS_PER_S) if zoned else local(stamps)


def _decimal(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() and -(2**63) < number < 2**63 else None


def _counted(numbers: Sequence[Decimal | None]) -> Stamps:
    known = sorted(number for number in numbers if number is not None)
    middle = known[len(known) // 2]
    scale, unit = next((s, u) for limit, s, u in _EPOCH_SCALES if abs(middle) < limit)
    ns = [None if number is None else round(number * scale) for number in numbers]
    fits = [None if n is None or abs(n) >= 2**62 else n for n in ns]
    column = pd.Series(pd.array(fits, dtype="Int64"))
    if middle * scale < _FIRST_EPOCH_S * NS_PER_S:
        return Stamps(column, "seconds since the log's own start", wall=False)
    return Stamps(column, f"{unit} since 1970 (UTC), as the log has them", scale)


def _iso(texts: Sequence[str]) -> Stamps:
    zoned = any(_ZONE.search(text) for text in texts)
    series = pd.Series(texts, dtype="str")
    parsed = pd.to_datetime(series, format="ISO8601", errors="coerce", utc=True)
    stamps = _ns(parsed.dt.tz_localize(None))
    return Stamps(stamps, "time stamps with a zone", NS_PER_S) if zoned else local(stamps)


def _ns(times: pd.Series[Any]) -> pd.Series[Any]:
    fits = times.between(_metrics.FIRST_TIME, _metrics.LAST_TIME)
    kept = times.where(fits).astype("datetime64[ns]").reset_index(drop=True)
    return kept.astype("int64").astype("Int64").mask(kept.isna())
