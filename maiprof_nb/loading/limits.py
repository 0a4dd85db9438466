"""How much one file may unpack to. Every limit can be raised by whoever trusts the file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields

from maiprof_nb.errors import LoadError, UsageError

RATIO_FROM_BYTES = 256 * 2**20  # small files may repeat themselves as much as they like
PREFIX = "MAIPROF_"


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what reading one file may cost.

    Parameters
    ----------
    max_bytes : int
        Unpacked bytes of one recording. The default lets a trace of 80 million events through.
    max_ratio : int
        Unpacked bytes for each byte of the file, over all members of an archive, once more
        than 256 MiB are unpacked. Recordings shrink 5 to 40 times, a bomb 1 000 times and more.
    max_members : int
        Files in one archive; the rest is left out with a note.
    max_wrappings : int
        Archives and compressions inside of one another.

    Notes
    -----
    The environment sets the same limits for every call: ``MAIPROF_MAX_BYTES`` and so on.
    """

    max_bytes: int = 32 * 2**30
    max_ratio: int = 200
    max_members: int = 10_000
    max_wrappings: int = 4

    @classmethod
    def from_environment(cls) -> Limits:
        """The defaults, or what ``MAIPROF_MAX_BYTES`` and its like say.

        Raises
        ------
        UsageError
            If one of them is no whole number above zero.
        """
        stated = {field.name: os.environ.get(variable(field.name)) for field in fields(cls)}
        return cls(**{name: _number(name, text) for name, text in stated.items() if text})


_IN_USE: ContextVar[Limits | None] = ContextVar("limits", default=None)


def current() -> Limits:
    """The limits in force here."""
    return _IN_USE.get() or Limits.from_environment()


@contextmanager
def using(limits: Limits | None) -> Iterator[None]:
    """Put `limits` in force inside a ``with``; None leaves those in force."""
    token = _IN_USE.set(limits or _IN_USE.get())
    try:
        yield
    finally:
        _IN_USE.reset(token)


def variable(name: str) -> str:
    """The environment variable of one limit."""
    return PREFIX + name.upper()


def _number(name: str, text: str) -> int:
    if not text.strip().isdecimal() or int(text) == 0:
        raise UsageError(
            f"{variable(name)} is {text!r}, not a whole number above zero",
            remedy="Unset it to have the default",
        )
    return int(text)


class Budget:
    """What the unpacking of one file may still cost.

    Parameters
    ----------
    where : str
        The file, for the message.
    packed_bytes : int
        Its size as it is stored.
    """

    def __init__(self, where: str, packed_bytes: int) -> None:
        self.limits = current()
        self._where = where
        self._packed = max(packed_bytes, 1)
        self._total = 0

    @property
    def exhausted(self) -> bool:
        """True once more was unpacked than fits the size of the file."""
        return self._total > max(RATIO_FROM_BYTES, self.limits.max_ratio * self._packed)

    def spend(self, unpacked_bytes: int) -> None:
        """Count bytes that were unpacked.

        Raises
        ------
        LoadError
            If they are out of proportion to the file.
        """
        self._total += unpacked_bytes
        if self.exhausted:
            raise LoadError(
                f"unpacks to more than {self.limits.max_ratio} times its size, as a bomb does",
                where=self._where,
                remedy=_raise("max_ratio"),
            )

    def check_size(self, unpacked_bytes: int) -> None:
        """Check the size of one recording.

        Raises
        ------
        LoadError
            If it is above ``max_bytes``.
        """
        if unpacked_bytes > self.limits.max_bytes:
            raise LoadError(
                f"unpacks to more than {self.limits.max_bytes:,} bytes",
                where=self._where,
                remedy=_raise("max_bytes"),
            )


def _raise(name: str) -> str:
    return (
        f"If you trust the file, set {variable(name)} higher or pass limits=; else do not open it"
    )
