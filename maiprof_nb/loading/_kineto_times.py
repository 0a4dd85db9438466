"""Decimal microseconds of a trace -> exact integer nanoseconds."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

EXACT_BELOW_US = 2.0**43  # a double resolves half a ns below this
_LIMIT_NS = 2**62
EPOCH_FROM_NS = 10**18  # September 2001: an absolute time, nothing relative is as large


def nanoseconds(
    values: list[Any], written: Callable[[], list[bytes]] | None = None
) -> tuple[Ints, Bools]:
    """Microseconds as parsed -> (ns, which of them are known).

    Parameters
    ----------
    values : list
        Numbers, numeric strings or None, in microseconds.
    written : callable, optional
        Gives the same values as they are written in the file; asked only when a double
        could not hold them (absolute time with decimals).

    Notes
    -----
    The whole and the fractional part are scaled apart: ``ts * 1000`` in one product would
    be off by one ns near 2^53.
    """
    micros = _doubles(values)
    known = np.isfinite(micros) & (np.abs(micros) < _LIMIT_NS / 1000)
    micros = np.where(known, micros, 0.0)
    whole = np.floor(micros)
    fraction = micros - whole
    if fraction.any() and np.abs(micros).max(initial=0.0) >= EXACT_BELOW_US:
        texts = written() if written is not None else [str(v).encode() for v in values]
        return _exact(texts, known), known
    return whole.astype(np.int64) * 1000 + np.rint(fraction * 1000).astype(np.int64), known


def _doubles(values: list[Any]) -> npt.NDArray[np.float64]:
    try:
        return np.array(values, dtype=np.float64)  # None becomes nan, "1.5" becomes 1.5
    except (TypeError, ValueError, OverflowError):
        return np.array([_double(value) for value in values], dtype=np.float64)


def _double(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def _exact(texts: list[bytes], known: Bools) -> Ints:
    return np.array(
        [_exact_one(text) if ok else 0 for text, ok in zip(texts, known, strict=True)],
        dtype=np.int64,
    )


def _exact_one(text: bytes) -> int:
    try:
        return int((Decimal(text.decode().strip().strip('"')) * 1000).to_integral_value())
    except (InvalidOperation, ValueError):
        return 0
