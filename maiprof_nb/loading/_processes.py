"""What logs of processes share: short names, and which rows belong to one tick."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

_MAX_NAME = 40


def base_name(path: str) -> str:
    """The last part of the path of a program, on any system."""
    name = path.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    return name if len(name) <= _MAX_NAME else f"{name[: _MAX_NAME - 1]}…"


@dataclass
class Ticks:
    """Numbers the samplings of a log without time stamps.

    A new one begins where something is seen that this sampling has seen already.
    """

    numbers: list[int] = field(default_factory=list)
    _seen: set[Hashable] = field(default_factory=set)
    _now: int = 0

    def add(self, key: Hashable) -> None:
        """Take the next row, about `key`."""
        if key in self._seen:
            self.begin()
        self._seen.add(key)
        self.numbers.append(self._now)

    def begin(self) -> None:
        """Begin a new sampling, unless this one is still empty."""
        if self._seen:
            self._now += 1
            self._seen.clear()
