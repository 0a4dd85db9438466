"""Compressed bytes -> pieces of what they hold, as far as they are whole."""

from __future__ import annotations

import bz2
import io
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

from maiprof_nb.loading.limits import Budget
from maiprof_nb.recording import Note

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_SLICE_BYTES = 64 * 2**10
_PIECE_BYTES = 4 * 2**20
_FINE_BYTES = 1  # near damage: a call that meets it gives nothing back
_XZ_MEMORY_BYTES = 256 * 2**20
_DAMAGE = (zlib.error, lzma.LZMAError, zstd.ZstdError, OSError, ValueError, EOFError)


class _Unpacker(Protocol):
    """What bz2, lzma and zstd have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _Zlib:
    """zlib's decompressor in the shape of the others.

    Parameters
    ----------
    wbits : int
        31 for gzip, -15 for bare deflate.
    """

    def __init__(self, wbits: int = 31) -> None:
        self._zlib = zlib.decompressobj(wbits=wbits)
        self._full = False

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def needs_input(self) -> bool:
        return not self._zlib.eof and not self._full and not self._zlib.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        limit = max(max_length, 0)
        found = self._zlib.decompress(self._zlib.unconsumed_tail + data, limit)
        self._full = bool(limit) and len(found) == limit  # more may wait inside
        return found


CODECS: dict[str, tuple[bytes, Callable[[], _Unpacker]]] = {
    "gzip": (b"\x1f\x8b", _Zlib),
    "zstd": (b"\x28\xb5\x2f\xfd", zstd.ZstdDecompressor),
    "xz": (b"\xfd7zXZ\0", lambda: lzma.LZMADecompressor(memlimit=_XZ_MEMORY_BYTES)),
    "bzip2": (b"BZh", bz2.BZ2Decompressor),
}


def codec_of(data: bytes) -> str | None:
    """The compression that `data` begins with."""
    found = (name for name, (magic, _) in CODECS.items() if data.startswith(magic))
    return next(found, None)


def pieces(data: bytes, codec: str, budget: Budget, notes: list[Note]) -> Iterator[bytes]:
    """What `data` unpacks to, one stream after the other; damage ends it with a note.

    Parameters
    ----------
    data : bytes
        One or more streams of `codec`, end to end.
    codec : str
        A key of `CODECS`.
    budget : Budget
        Stops a bomb.
    notes : list of Note
        Receives what was cut, damaged or left over, once the last piece was taken.
    """
    magic, make = CODECS[codec]
    packed, at, total = memoryview(data), 0, 0
    while packed[at : at + len(magic)] == magic:
        stream = Stream(packed[at:], make)
        for piece in stream:
            budget.spend(len(piece))
            total += len(piece)
            yield piece
        if stream.problem:
            notes.append(_broken(codec, stream, total))
            return
        at += stream.used
    rest = len(bytes(packed[at:]).strip(b"\0"))
    if rest:
        text = f"{rest} bytes behind the compressed data were skipped."
        notes.append(Note("trailing-bytes", text, rest))


def deflate() -> _Zlib:
    """A decompressor of bare deflate, as zip archives hold it."""
    return _Zlib(-zlib.MAX_WBITS)


class Stream:
    """The pieces of one compressed stream.

    Parameters
    ----------
    packed : memoryview
        Begins with the stream.
    make : callable
        Makes a fresh decompressor.

    Attributes
    ----------
    used : int
        Bytes of `packed` that belong to the stream, once all pieces were taken.
    problem : str
        Why it ended before its end; empty if it is whole.
    cut : bool
        True where the data ends too early, False where they are damaged.
    """

    def __init__(self, packed: memoryview, make: Callable[[], _Unpacker]) -> None:
        self._packed = packed
        self._make = make
        self.used = 0
        self.problem = ""
        self.cut = False

    def __iter__(self) -> Iterator[bytes]:
        unpacker = self._make()
        given = start = 0
        try:
            while not unpacker.eof:
                feed = b""
                if unpacker.needs_input:
                    start = self.used
                    feed = bytes(self._packed[start : start + _SLICE_BYTES])
                    self.used += len(feed)
                    if not feed:
                        self.problem, self.cut = "it ends early", True
                        return
                piece = unpacker.decompress(feed, _PIECE_BYTES)
                given += len(piece)
                if piece:
                    yield piece
            self.used -= len(unpacker.unused_data)
        except _DAMAGE as problem:
            self.problem = str(problem)
            yield from self._whole_until_damage(start, given)

    def _whole_until_damage(self, start: int, given: int) -> Iterator[bytes]:
        """Unpack once more byte by byte where it broke."""
        unpacker = self._make()
        steps = [(at, _SLICE_BYTES) for at in range(0, start, _SLICE_BYTES)]
        end = min(start + _SLICE_BYTES, len(self._packed))
        steps += [(at, _FINE_BYTES) for at in range(start, end, _FINE_BYTES)]
        try:
            for at, size in steps:
                feed = bytes(self._packed[at : at + size])
                while feed or not (unpacker.needs_input or unpacker.eof):
                    piece = unpacker.decompress(feed, _PIECE_BYTES)
                    feed = b""
                    new = piece[max(given, 0) :]
                    given -= len(piece)
                    if new:
                        yield new
        except _DAMAGE:
            return


def _broken(codec: str, stream: Stream, total: int) -> Note:
    if stream.cut:
        return Note(f"{codec}-cut", f"The compressed data ends early; {total} bytes were unpacked.")
    text = f"The compressed data is damaged ({stream.problem}); {total} bytes were unpacked."
    return Note(f"{codec}-damaged", text)


def joined(found: Iterator[bytes], budget: Budget) -> bytes:
    """All pieces as one, without holding them twice."""
    whole = io.BytesIO()
    for piece in found:
        budget.check_size(whole.tell() + len(piece))
        whole.write(piece)
    return whole.getvalue()
