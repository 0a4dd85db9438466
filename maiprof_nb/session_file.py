"""The session file: which recordings a session is made of, and where they lie on its axis."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Annotated

import fsspec
import msgspec

from maiprof_nb.errors import LoadError, UsageError
from maiprof_nb.placement import Axis, Placement
from maiprof_nb.recording import Recording

SUFFIX = ".maiprof.json"
_VERSION = 1
_MARK = b'"maiprof_session"'
_MAX_BYTES = 4 * 2**20
_END_BYTES = 2**20

_Ns = Annotated[int, msgspec.Meta(ge=-(2**61), le=2**61)]
_Text = Annotated[str, msgspec.Meta(max_length=4096)]


class SavedPlacement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A place on the axis that does not follow from the clocks."""

    offset_ns: _Ns
    origin: _Text
    uncertainty_ns: _Ns | None = None

    def placement(self, moved_ns: int) -> Placement:
        """The place on an axis whose zero lies `moved_ns` earlier than when it was saved."""
        return Placement(
            self.offset_ns + moved_ns, self.origin, self.uncertainty_ns, on_axis=True, stated=True
        )


class SavedRecording(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One recording: its file, what the file was, and what was said about it by hand.

    Parameters
    ----------
    source : str
        Path relative to the session file where it lies below, with ``/``; else an absolute
        path or a URL.
    size_bytes, ends_sha256
        Size of the file, and a hash of its first and last MiB.
    member : str
        Name within the archive that `source` is; empty where it is none.
    rank, zone, interval_ns, placement
        As stated; None where nothing was.
    """

    source: _Text
    size_bytes: int
    ends_sha256: _Text
    member: _Text = ""
    rank: Annotated[int, msgspec.Meta(ge=0, le=2**31)] | None = None
    zone: _Text | None = None
    interval_ns: Annotated[int, msgspec.Meta(gt=0, le=2**61)] | None = None
    placement: SavedPlacement | None = None


class SavedSession(msgspec.Struct, frozen=True):
    """All of a session file."""

    maiprof_session: int
    recordings: Annotated[list[SavedRecording], msgspec.Meta(max_length=10_000)]
    epoch_ns: int | None = None


def is_session_file(path_or_url: str) -> bool:
    """True for a file that begins as a session file, whatever its name."""
    try:
        with fsspec.open(path_or_url, "rb") as handle:
            head = handle.read(256)
    except (OSError, ValueError, ImportError):
        return False
    return head.lstrip().startswith(b"{") and _MARK in head


def read(path: str) -> SavedSession:
    """The content of a session file.

    Raises
    ------
    LoadError
        If it is damaged, or of a later version than this one knows.
    """
    with fsspec.open(path, "rb") as handle:
        data = handle.read(_MAX_BYTES + 1)
    try:
        if len(data) > _MAX_BYTES:
            raise LoadError("is too large for a session file", where=path)
        found = msgspec.json.decode(data, type=SavedSession)
    except (msgspec.MsgspecError, ValueError, RecursionError) as problem:
        raise LoadError(
            f"is a damaged session file ({problem})",
            where=path,
            remedy="Load the recordings themselves, and save the session again",
        ) from problem
    if found.maiprof_session != _VERSION:
        raise LoadError(
            f"is a session file of version {found.maiprof_session}, and this is maiprof_nb for "
            f"version {_VERSION}",
            where=path,
            remedy="Install the maiprof_nb that wrote it, or load the recordings themselves",
        )
    return found


def write(path: str | os.PathLike[str], recordings: Sequence[Recording], axis: Axis) -> None:
    """Write a session file.

    Raises
    ------
    UsageError
        If `path` is a URL or cannot be written, or a recording is no longer where it was.
    """
    target = os.fspath(path)
    if "://" in target:
        raise UsageError("a session is saved to a local file", where=target)
    folder = Path(target).resolve().parent
    saved = SavedSession(
        maiprof_session=_VERSION,
        epoch_ns=axis.epoch_ns,
        recordings=[
            _saved(recording, placement, folder)
            for recording, placement in zip(recordings, axis.placements, strict=True)
        ],
    )
    beside = Path(f"{target}.{os.getpid()}.part")
    try:
        beside.write_bytes(msgspec.json.format(msgspec.json.encode(saved), indent=1) + b"\n")
        beside.replace(target)
    except OSError as problem:
        beside.unlink(missing_ok=True)
        raise UsageError(f"the session cannot be written ({problem})", where=target) from problem


def fingerprint(path_or_url: str) -> tuple[int, str]:
    """Size of a file, and a hash of its first and last MiB: enough to see that it changed.

    Raises
    ------
    OSError
        If it cannot be read.
    """
    system, path = fsspec.core.url_to_fs(path_or_url)
    size = int(system.size(path) or 0)
    digest = hashlib.sha256(system.read_block(path, 0, _END_BYTES))
    if size > _END_BYTES:
        digest.update(system.read_block(path, max(size - _END_BYTES, _END_BYTES), _END_BYTES))
    return size, digest.hexdigest()


def location(source: str, session_path: str, *, trust_paths: bool) -> str:
    """Where a recording of a session file is to be opened.

    A session file may come from anyone: it names files in its own folder or below, and nothing
    else on this machine or the network, unless the reader says that it may.

    Raises
    ------
    LoadError
        If it may not be opened.
    """
    if _is_absolute(source):
        if trust_paths:
            return source
        raise _leads_out(source, session_path)
    if ".." in PurePosixPath(source.replace("\\", "/")).parts and not trust_paths:
        raise _leads_out(source, session_path)
    if "://" in session_path:
        return f"{session_path.rpartition('/')[0]}/{source}"
    folder = Path(session_path).resolve().parent
    target = (folder / source).resolve()  # a link may lead out as well
    if not (trust_paths or target.is_relative_to(folder)):
        raise _leads_out(source, session_path)
    return str(target)


def source_name(path_or_url: str) -> str:
    """Last part of a path or URL."""
    return path_or_url.replace("\\", "/").rsplit("/", 1)[-1]


def _is_absolute(source: str) -> bool:
    """Whether a name means something other than a place below the session file's folder."""
    windows = PureWindowsPath(source)
    return (
        "::" in source
        or "://" in source
        or "\0" in source
        or bool(windows.drive or windows.root)
        or source.startswith("~")
    )


def _leads_out(source: str, session_path: str) -> LoadError:
    shown = source if len(source) <= 200 else f"{source[:200]}..."
    return LoadError(
        f"names a recording outside its own folder: {shown!r}",
        where=session_path,
        remedy="Put the recording beside the session file and save the session anew, or, if you "
        "trust who wrote it, load(..., trust_paths=True)",
    )


def _saved(recording: Recording, placement: Placement, folder: Path) -> SavedRecording:
    file, member = _file_and_member(recording.source)
    try:
        size, digest = fingerprint(file)
    except (OSError, ValueError, ImportError) as problem:
        raise UsageError(
            f"the recording is no longer there ({problem})",
            where=recording.source,
            remedy="Save the session while its recordings are in place",
        ) from problem
    return SavedRecording(
        source=_relative(file, folder),
        size_bytes=size,
        ends_sha256=digest,
        member=member,
        rank=recording.rank,
        zone=recording.meta.get("zone"),
        interval_ns=recording.meta.get("interval_ns"),
        placement=SavedPlacement(placement.offset_ns, placement.origin, placement.uncertainty_ns)
        if placement.stated
        else None,
    )


def _file_and_member(source: str) -> tuple[str, str]:
    """The file, and the name within it where the file is an archive."""
    if "://" in source:
        return source, ""
    path = Path(source)
    for place in (path, *path.parents):
        if place.is_file():
            return str(place), path.relative_to(place).as_posix() if place != path else ""
    return source, ""


def _relative(file: str, folder: Path) -> str:
    if "://" in file:
        return file
    full = Path(file).resolve()
    return full.relative_to(folder).as_posix() if full.is_relative_to(folder) else str(full)
