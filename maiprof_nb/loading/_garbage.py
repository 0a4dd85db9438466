"""Reading without Python looking for garbage again and again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def garbage_left() -> Iterator[None]:
    """Collect no cyclic garbage meanwhile.

    Plain data has none to find, but each million of new objects is looked through many times:
    unpickling takes two to three times as long with the collector on.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
