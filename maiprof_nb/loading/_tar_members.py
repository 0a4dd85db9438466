"""Tar archives as a stream: one member is in memory at a time."""

from __future__ import annotations

import tarfile
from collections.abc import Iterable, Iterator
from typing import IO, cast

from maiprof_nb.loading._member import Member
from maiprof_nb.recording import Note

_MAGIC, _MAGIC_AT = b"ustar", 257
_CHUNK_BYTES = 2**20


def is_tar(data: bytes) -> bool:
    """True if a tar header stands at the beginning."""
    return data.startswith(_MAGIC, _MAGIC_AT)


def members(stream: Iterable[bytes]) -> Iterator[Member]:
    """The entries of a tar, in order; a cut or damaged tar ends with a note at its last one."""
    reader = _Reader(iter(stream))
    last = Member("")
    try:
        with tarfile.open(fileobj=cast("IO[bytes]", reader), mode="r|") as archive:
            while (info := archive.next()) is not None:
                last = _member(info, archive)
                yield last
    except Exception as problem:  # noqa: BLE001 - a damaged header can raise nearly anything
        if reader.failure is not None:
            raise reader.failure from None
        text = f"The archive is damaged behind {last.name!r} ({problem}); the rest is lost."
        yield Member("", "end", notes=[Note("archive-damaged", text)])


def _member(info: tarfile.TarInfo, archive: tarfile.TarFile) -> Member:
    if info.isdir():
        return Member(info.name, "folder")
    if not info.isreg():
        return Member(info.name, "link")
    if info.issparse() or info.size < 0:
        return Member(
            info.name, problem="is stored with holes", remedy="Unpack the archive with tar first"
        )
    found = Member(info.name)
    found.pieces = _pieces(info, archive, found.notes)
    return found


def _pieces(info: tarfile.TarInfo, archive: tarfile.TarFile, notes: list[Note]) -> Iterator[bytes]:
    """Straight from the stream, which gives what there is where `extractfile` gives an error."""
    stream = archive.fileobj
    if stream is None:
        return
    left = info.size
    while left:
        piece = stream.read(min(left, _CHUNK_BYTES))
        if not piece:
            text = f"The archive ends inside this file, {left} bytes before its end."
            notes.append(Note("archive-cut", text))
            return
        left -= len(piece)
        yield piece


class _Reader:
    """The stream as a file object for `tarfile`.

    Attributes
    ----------
    failure : Exception or None
        What the stream itself raised; `tarfile` may hide it.
    """

    def __init__(self, stream: Iterator[bytes]) -> None:
        self._stream = stream
        self._piece = memoryview(b"")
        self.failure: Exception | None = None

    def read(self, size: int) -> bytes:
        while not self._piece:
            try:
                self._piece = memoryview(next(self._stream))
            except StopIteration:
                return b""
            except Exception as problem:
                self.failure = problem
                raise
        found = bytes(self._piece[:size])
        self._piece = self._piece[size:]
        return found
