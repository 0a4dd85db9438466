"""How far a load is, on the terminal of whoever waits for it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from maiprof_nb import units
from maiprof_nb.cli._text import printable
from maiprof_nb.loading.progress import Report
from maiprof_nb.timebase import NS_PER_S

_PATIENCE_S, _EVERY_S = 1.0, 0.25
_NAME_WIDTH = 40
_CLEAR = "\r\x1b[K"


@contextmanager
def shown(path: str, stream: TextIO | None = None) -> Iterator[Report | None]:
    """A listener for `maiprof_nb.load` that writes one line and takes it away again.

    Nothing is written within the first second, nor where the stream (standard error) is no
    terminal; the listener is None there. Ctrl-C stops the load as ever.
    """
    out = stream or sys.stderr
    if not out.isatty():
        yield None
        return
    begun = told = time.monotonic()
    written = False

    def report(share: float) -> None:
        nonlocal told, written
        now = time.monotonic()
        if now - begun < _PATIENCE_S or now - told < _EVERY_S or not share:
            return
        told, written = now, True
        out.write(f"{_CLEAR}{_line(path, share, now - begun)}")
        out.flush()

    try:
        yield report
    finally:
        if written:
            out.write(_CLEAR)
            out.flush()


def _line(path: str, share: float, elapsed_s: float) -> str:
    left_s = max(round(elapsed_s * (1 - share) / share), 1)
    left = f"{left_s} s" if left_s < 60 else units.duration(left_s * NS_PER_S)
    name = path if len(path) <= _NAME_WIDTH else f"...{path[3 - _NAME_WIDTH :]}"
    return f"reading {printable(name)}: {share * 100:.0f} %, about {left} left"
