"""Zip and tar archives read in memory, member by member: nothing is ever written to a disk."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from maiprof_nb.errors import LoadError
from maiprof_nb.loading import _compression, _tar_members, _zip_members
from maiprof_nb.loading._member import Member
from maiprof_nb.loading.limits import Budget, variable
from maiprof_nb.recording import Note

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_DRIVE = re.compile(r"^[A-Za-z]:")
_MAX_NAME = 200


@dataclass(frozen=True)
class Part:
    """One file as a reader gets it: a whole file, or one member of an archive.

    Parameters
    ----------
    name : str
        Path or URL; behind it, after a slash, the name within the archive.
    data : bytes
        The content without compression.
    notes : list of Note
        What was odd about the wrapping.
    problem : LoadError or None
        Why there is no content; reported where the others of the archive can be read.
    """

    name: str
    data: bytes = b""
    notes: list[Note] = field(default_factory=list)
    problem: LoadError | None = None

    def content(self) -> bytes:
        """The content.

        Raises
        ------
        LoadError
            If it could not be unpacked.
        """
        if self.problem is not None:
            raise self.problem
        return self.data


def is_archive(data: bytes) -> bool:
    """True for a zip or a tar that is not compressed itself."""
    return _zip_members.is_zip(data) or _tar_members.is_tar(data)


def parts(data: bytes, name: str, budget: Budget) -> Iterator[Part]:
    """The file itself if it is no archive, else its members; compression is taken off.

    A member that cannot be unpacked is a part with a problem. Links, devices and hidden
    files are left out.
    """
    try:
        yield from _parts(data, name, budget, [], 0)
    except LoadError as problem:
        yield Part(name, problem=problem)


def _parts(
    data: bytes,
    name: str,
    budget: Budget,
    notes: list[Note],
    wrappings: int,
    *,
    again: bool = False,
) -> Iterator[Part]:
    codec = _compression.codec_of(data)
    if codec is None and not is_archive(data):
        budget.check_size(len(data))
        yield Part(name, data, notes)
        return
    if wrappings >= budget.limits.max_wrappings:
        raise LoadError(
            f"is packed more than {budget.limits.max_wrappings} times over",
            where=name,
            remedy=f"Unpack it first, or set {variable('max_wrappings')} higher",
        )
    if codec is None:
        members = (
            _tar_members.members([data])
            if _tar_members.is_tar(data)
            else _zip_members.members(data, name, budget)
        )
        yield from _of_archive(members, name, budget, notes, wrappings + 1)
        return
    if again:
        notes.append(Note("gzip-twice", "The file was compressed more than once."))
    pieces = _compression.pieces(data, codec, budget, notes)
    first = next(pieces, b"")
    stream = chain([first], pieces)
    if _tar_members.is_tar(first):
        yield from _of_archive(_tar_members.members(stream), name, budget, notes, wrappings + 1)
        return
    whole = _compression.joined(stream, budget)
    yield from _parts(whole, name, budget, notes, wrappings + 1, again=True)


def _of_archive(
    members: Iterable[Member], name: str, budget: Budget, notes: list[Note], wrappings: int
) -> Iterator[Part]:
    """The parts of an archive; what is left out is noted at the part that comes before it."""
    left_out = _LeftOut()
    held: Part | None = None
    try:
        for member in members:
            if not left_out.admits(member, budget.limits.max_members):
                notes += member.notes if member.kind == "end" else []
                continue
            for part in _member_parts(member, name, budget, wrappings):
                if held is not None:
                    yield held
                held = part
            if budget.exhausted:
                break
    except LoadError as problem:
        if held is None:
            raise
        yield held
        held = Part(name, problem=problem)
    if held is None:
        raise LoadError(
            "the archive holds no files",
            where=name,
            remedy="Give an archive of traces, snapshots or metrics logs",
        )
    held.notes.extend([*notes, *left_out.notes()])
    yield held


def _member_parts(member: Member, archive: str, budget: Budget, wrappings: int) -> Iterator[Part]:
    name = f"{archive}/{_shown(member.name)}"
    if member.problem:
        yield Part(name, problem=LoadError(member.problem, where=name, remedy=member.remedy))
        return
    try:
        data = _compression.joined(iter(member.pieces), budget)
        yield from _parts(data, name, budget, member.notes, wrappings)
    except LoadError as problem:
        yield Part(name, problem=problem)


@dataclass
class _LeftOut:
    """What of an archive is not read as it stands."""

    links: int = 0
    bent: int = 0
    read: int = 0
    beyond: int = 0

    def admits(self, member: Member, most: int) -> bool:
        """True for a file to be read; what is left out is counted."""
        shown = _shown(member.name)
        self.links += member.kind == "link"
        if member.kind != "file" or any(p.startswith((".", "__MACOSX")) for p in shown.split("/")):
            return False
        if self.read == most:
            self.beyond += 1
            return False
        self.read += 1
        self.bent += shown != member.name.removeprefix("./")
        return True

    def notes(self) -> list[Note]:
        """The notes on it."""
        said = (
            ("archive-links", self.links, "links or devices in the archive were left out."),
            (
                "archive-paths",
                self.bent,
                "names in the archive lead out of it or cannot be shown and were changed.",
            ),
            (
                "archive-too-many",
                self.beyond,
                f"files of the archive were left out; {variable('max_members')} sets how many "
                "are read.",
            ),
        )
        return [Note(code, f"{n} {text}", n) for code, n, text in said if n]


def _shown(written: str) -> str:
    """A member's name as a relative path that can be shown."""
    parts_of_path = _DRIVE.sub("", written.replace("\\", "/")).split("/")
    kept = [part for part in parts_of_path if part not in {"", ".", ".."}]
    return _UNPRINTABLE.sub("?", "/".join(kept))[-_MAX_NAME:] or "unnamed"
