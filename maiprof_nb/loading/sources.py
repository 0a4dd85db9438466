"""Bytes from a file, folder or URL, unwrapped from compression by content."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import fsspec

from maiprof_nb.errors import LoadError
from maiprof_nb.recording import Note

GZIP_MAGIC = b"\x1f\x8b"
MAX_WRAPPINGS = 3
MAX_BYTES = 32 * 2**30  # a bomb ends here, a 10 M event trace does not
_CHUNK = 4 * 2**20


def files(path_or_url: str) -> list[str]:
    """The files a path or URL stands for: itself, or everything below a folder, sorted.

    Raises
    ------
    LoadError
        If nothing is there or a folder is empty.
    """
    try:
        system, path = fsspec.core.url_to_fs(path_or_url)
        if not system.exists(path):
            raise LoadError(
                "there is no such file or folder",
                where=path_or_url,
                remedy="Check the spelling, or give a URL that fsspec knows (s3://, gs://, https://)",
            )
        if not system.isdir(path):
            return [path_or_url]
        found = sorted(name for name in system.find(path) if not _hidden(name[len(path) :]))
    except (OSError, ValueError, ImportError) as problem:
        raise LoadError(f"cannot be opened ({problem})", where=path_or_url) from problem
    if not found:
        raise LoadError(
            "the folder holds no files",
            where=path_or_url,
            remedy="Give the folder that the profiler's traces were written to",
        )
    return [name if "://" not in path_or_url else system.unstrip_protocol(name) for name in found]


def _hidden(relative: str) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in relative.split("/") if part)


def content(path_or_url: str) -> tuple[bytes, list[Note]]:
    """The bytes of one file without its gzip wrappings, and notes on what was odd.

    A cut gzip stream gives what could be unpacked before the cut, with a note.

    Raises
    ------
    LoadError
        If the file cannot be read, or unpacks to more than ``MAX_BYTES``.
    """
    try:
        with fsspec.open(path_or_url, "rb") as handle:
            data: bytes = handle.read()
    except (OSError, ValueError, ImportError) as problem:
        raise LoadError(f"cannot be read ({problem})", where=path_or_url) from problem
    notes: list[Note] = []
    for wrapping in range(MAX_WRAPPINGS):
        if not data.startswith(GZIP_MAGIC):
            break
        data, cut = _gunzip(data, path_or_url)
        if cut:
            notes.append(
                Note(
                    "gzip-cut", f"The compressed data ends early; {len(data)} bytes were unpacked."
                )
            )
        if wrapping:
            notes.append(Note("gzip-twice", "The file was compressed more than once."))
    return data, notes


def _gunzip(data: bytes, where: str) -> tuple[bytes, bool]:
    pieces: list[bytes] = []
    total = 0
    cut = False
    for piece in _members(data):
        if piece is None:
            cut = True
            break
        pieces.append(piece)
        total += len(piece)
        if total > MAX_BYTES:
            raise LoadError(
                f"unpacks to more than {MAX_BYTES // 2**30} GiB",
                where=where,
                remedy="Record fewer steps, or unpack and split the file",
            )
    return b"".join(pieces), cut


def _members(data: bytes) -> Iterator[bytes | None]:
    """Unpacked pieces of every gzip member; None where the stream breaks off."""
    rest = data
    while rest.startswith(GZIP_MAGIC):
        unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        feed = rest
        while not unpacker.eof:
            try:
                piece = unpacker.decompress(feed, _CHUNK)
            except zlib.error:
                piece = b""
            feed = unpacker.unconsumed_tail
            if not piece and not unpacker.eof:
                yield None
                return
            yield piece
        rest = unpacker.unused_data
