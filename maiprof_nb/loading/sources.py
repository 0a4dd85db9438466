"""Bytes from a file, folder or URL, unwrapped from compression and archives by content."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import fsspec

from maiprof_nb.errors import LoadError
from maiprof_nb.loading import _compression, archives, limits
from maiprof_nb.loading.archives import Part
from maiprof_nb.loading.limits import Budget
from maiprof_nb.recording import Note

_CHUNK = 4 * 2**20


def files(path_or_url: str) -> list[str]:
    """The files a path or URL stands for: itself, or everything below a folder, sorted.

    Raises
    ------
    LoadError
        If nothing is there or a folder is empty.
    """
    if "\0" in path_or_url:
        raise LoadError("cannot be opened (a name holds no NUL)", where=path_or_url)
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


def open_all(path_or_url: str) -> Iterator[Part]:
    """What a reader gets of one file: itself without compression, or each member of an archive.

    One member is unpacked at a time. What cannot be unpacked is a part with a problem, which
    `Part.content` raises.

    Raises
    ------
    LoadError
        If the file itself cannot be read.
    """
    data = _stored(path_or_url)
    yield from archives.parts(data, path_or_url, Budget(path_or_url, len(data)))


def content(path_or_url: str) -> tuple[bytes, list[Note]]:
    """The bytes of one file without its compression, and notes on what was odd.

    A cut stream gives what could be unpacked before the cut, with a note. An archive of one
    file stands for that file.

    Raises
    ------
    LoadError
        If the file cannot be read, unpacks to more than the limits allow, or is an archive
        of several files.
    """
    found = list(islice(open_all(path_or_url), 2))
    if len(found) > 1:
        raise LoadError(
            "is an archive of several files",
            where=path_or_url,
            remedy="Load it whole with maiprof_nb.load, or give one of its files",
        )
    return found[0].content(), found[0].notes


def _stored(path_or_url: str) -> bytes:
    """The bytes as they are stored."""
    most = limits.current().max_bytes
    try:
        with fsspec.open(path_or_url, "rb") as handle:
            size = getattr(handle, "size", None)  # some servers do not say
            if size is not None and size <= most:
                return bytes(handle.read())
            budget = Budget(path_or_url, size or 0)
            return _compression.joined(iter(lambda: handle.read(_CHUNK), b""), budget)
    except (OSError, ValueError, ImportError) as problem:
        raise LoadError(f"cannot be read ({problem})", where=path_or_url) from problem
