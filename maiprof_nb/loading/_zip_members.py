"""Zip archives by their directory, or header by header where that was cut off."""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from maiprof_nb.errors import LoadError
from maiprof_nb.loading import _compression
from maiprof_nb.loading._member import Member
from maiprof_nb.loading.limits import Budget
from maiprof_nb.recording import Note

_LOCAL = b"PK\x03\x04"
_EMPTY = b"PK\x05\x06"
_HEADER = struct.Struct("<4s5H3L2H")  # of a member, in front of its content
_STORED, _DEFLATED, _BZIP2, _ZSTD = 0, 8, 12, 93
_ENCRYPTED, _SIZES_BEHIND, _UTF8 = 1, 8, 1 << 11
_UNKNOWN = 2**32 - 1  # the real size stands in an extra field


@dataclass(frozen=True)
class _Entry:
    name: str
    flags: int
    method: int
    crc: int | None
    at: int
    packed_bytes: int | None
    mode: int = 0


def is_zip(data: bytes) -> bool:
    """True if a zip archive begins here."""
    return data.startswith((_LOCAL, _EMPTY))


def members(data: bytes, name: str, budget: Budget) -> Iterator[Member]:
    """The entries of a zip archive.

    Raises
    ------
    LoadError
        If it is a checkpoint of ``torch.save``, which is a zip archive too.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = [_listed(data, info) for info in archive.infolist()]
        cut = False
    except Exception:  # noqa: BLE001 - a damaged directory can raise nearly anything
        entries, cut = _headers(data), True
    _refuse_checkpoint({entry.name for entry in entries}, name)
    for entry in entries:
        yield _member(data, entry, budget)
    if cut:
        text = "The archive has lost its directory (it was cut); its files were looked for."
        yield Member("", "end", notes=[Note("archive-cut", text)])


def _refuse_checkpoint(names: set[str], where: str) -> None:
    folders = {name.removesuffix("/data.pkl") for name in names if name.endswith("/data.pkl")}
    if any(f"{folder}/version" in names for folder in folders):
        raise LoadError(
            "is a checkpoint that torch.save wrote",
            where=where,
            remedy="Give a trace of torch.profiler or a snapshot of "
            "torch.cuda.memory._dump_snapshot",
        )


def _listed(data: bytes, info: zipfile.ZipInfo) -> _Entry:
    at = info.header_offset
    if data[at : at + 4] != _LOCAL or at + _HEADER.size > len(data):
        at = len(data)
    else:
        *_, name_bytes, extra_bytes = _HEADER.unpack_from(data, at)
        at += _HEADER.size + name_bytes + extra_bytes
    mode = info.external_attr >> 16
    kept = info.orig_filename  # `filename` ends at a NUL
    return _Entry(kept, info.flag_bits, info.compress_type, info.CRC, at, info.compress_size, mode)


def _headers(data: bytes) -> list[_Entry]:
    """The members that still have a header, without the help of the directory."""
    found: list[_Entry] = []
    at = data.find(_LOCAL)
    while 0 <= at <= len(data) - _HEADER.size:
        fields = _HEADER.unpack_from(data, at)
        flags, method, crc, packed_bytes = fields[2], fields[3], fields[6], fields[7]
        names, extras = fields[9], fields[10]
        start = at + _HEADER.size + names + extras
        raw = data[at + _HEADER.size : at + _HEADER.size + names]
        stated = not flags & _SIZES_BEHIND and packed_bytes != _UNKNOWN
        entry = _Entry(
            raw.decode("utf-8" if flags & _UTF8 else "cp437", "replace"),
            flags,
            method,
            crc if stated else None,
            start,
            packed_bytes if stated else None,
        )
        found.append(entry)
        at = data.find(_LOCAL, start + (packed_bytes if stated else 0))
    return found


def _member(data: bytes, entry: _Entry, budget: Budget) -> Member:
    if entry.name.endswith("/"):
        return Member(entry.name, "folder")
    if entry.mode and stat.S_IFMT(entry.mode) not in {0, stat.S_IFREG}:
        return Member(entry.name, "link")
    if entry.flags & _ENCRYPTED:
        return Member(
            entry.name, problem="is encrypted", remedy="Unpack the archive with its password first"
        )
    if entry.method not in {_STORED, _DEFLATED, _BZIP2, _ZSTD}:
        return Member(
            entry.name,
            problem=f"is packed with zip method {entry.method}, which is not read",
            remedy="Unpack the archive first",
        )
    found = Member(entry.name)
    found.pieces = _pieces(data, entry, budget, found.notes)
    return found


def _pieces(data: bytes, entry: _Entry, budget: Budget, notes: list[Note]) -> Iterator[bytes]:
    end = len(data) if entry.packed_bytes is None else entry.at + entry.packed_bytes
    packed = memoryview(data)[entry.at : end]
    crc = 0
    problem = "it ends early" if end > len(data) else ""
    if entry.method == _STORED:
        budget.spend(len(packed))
        crc = zlib.crc32(packed)
        yield bytes(packed)
    else:
        stream = _compression.Stream(packed, _UNPACKERS[entry.method])
        for piece in stream:
            budget.spend(len(piece))
            crc = zlib.crc32(piece, crc)
            yield piece
        problem = stream.problem
    if not problem and entry.crc not in {None, crc}:
        problem = "its check sum differs"
    if problem:
        notes.append(Note("archive-damaged", f"This file of the archive is damaged ({problem})."))


_UNPACKERS = {
    _DEFLATED: _compression.deflate,
    _BZIP2: _compression.CODECS["bzip2"][1],
    _ZSTD: _compression.CODECS["zstd"][1],
}
