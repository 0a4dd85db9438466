"""One path -> its recordings: from the cache, a file, an archive or a folder."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from maiprof_nb import session_file
from maiprof_nb.errors import LoadError, MaiprofError
from maiprof_nb.loading import cache, progress, registry, sources
from maiprof_nb.loading.ahead import read_ahead
from maiprof_nb.loading.rank import rank_of
from maiprof_nb.recording import Note, Recording
from maiprof_nb.tables import SCHEMAS

_LOG = logging.getLogger(__name__)


def recordings_of(path_or_url: str, ranks: Mapping[str, int]) -> list[Recording]:
    """The recordings of one path: of a file, or those that can be read of a folder or archive.

    Raises
    ------
    LoadError
        If it is a file that cannot be read, or holds several of which none can.
    """
    found = sources.files(path_or_url)
    if found == [path_or_url]:
        return [_with_rank(one, ranks) for one in read_through(path_or_url)]
    found = _without_session_files(found, path_or_url)
    read_ahead(found)
    recordings: list[Recording] = []
    refused: list[str] = []
    for number, name in enumerate(found):
        try:
            with progress.part(number, len(found)):
                recordings += read_through(name)
        except LoadError as problem:
            refused.append(problem.sentence)
    return [_with_rank(one, ranks) for one in _readable(recordings, refused, path_or_url)]


def read_through(name: str) -> list[Recording]:
    """What one file holds, from the cache if it is known there, and else into it.

    One recording of a file; one a member of an archive, those that can be read.

    Raises
    ------
    LoadError
        If none can be read.
    """
    known = cache.fetch(name)
    if known is not None:
        return [known]
    recordings: list[Recording] = []
    refused: list[LoadError] = []
    for part in sources.open_all(name):
        try:
            recordings.append(_read(part.name, part.content(), list(part.notes)))
        except LoadError as problem:
            refused.append(problem)
    if not recordings and len(refused) == 1:
        raise refused[0]
    return _readable(recordings, [problem.sentence for problem in refused], name)


def base_name(path_or_url: str) -> str:
    """The last part of a path or URL."""
    return path_or_url.replace("\\", "/").rsplit("/", 1)[-1]


def _read(name: str, data: bytes, notes: list[Note]) -> Recording:
    if len(data) < cache.MIN_BYTES or cache.folder() is None:
        return _parsed(data, name, notes)
    key = cache.content_key(data, notes)
    found = cache.fetch(name, key)
    if found is None:
        found = _parsed(data, name, notes)
        cache.store(found, key)
    return found


def _parsed(data: bytes, name: str, notes: list[Note]) -> Recording:
    try:
        recording = registry.read(data, name)
    except MaiprofError:
        raise
    except Exception as problem:
        if progress.wanted(problem):
            raise
        _LOG.exception("a reader failed on %s", name)
        raise LoadError(
            f"cannot be read, by a fault of the reader ({type(problem).__name__}: {problem})",
            where=name,
            remedy="Please report it with the first lines of the file",
        ) from problem
    for table, frame in recording.tables.items():
        SCHEMAS[table].validate(frame)
    return replace(recording, notes=(*notes, *recording.notes))


def _readable(recordings: list[Recording], refused: list[str], where: str) -> list[Recording]:
    """What could be read, with a note on what could not; an error if that is all."""
    if not recordings:
        raise LoadError(
            f"none of the {len(refused)} files in there can be read; the first: {refused[0]}"
            if refused
            else "there is nothing in it that can be read",
            where=where,
        )
    if refused:
        text = f"Files were left out; the first: {refused[0]}"
        noted = (*recordings[0].notes, Note("file-left-out", text, len(refused)))
        recordings[0] = replace(recordings[0], notes=noted)
    return recordings


def _without_session_files(found: list[str], folder: str) -> list[str]:
    """What a folder holds besides sessions that were saved in it: those repeat it."""
    kept = [name for name in found if not name.endswith(session_file.SUFFIX)]
    if not kept:
        raise LoadError(
            "the folder holds session files only",
            where=folder,
            remedy=f"Load one by its name: {base_name(found[0])}",
        )
    return kept


def _with_rank(recording: Recording, ranks: Mapping[str, int]) -> Recording:
    name = recording.source
    given = ranks.get(name, ranks.get(base_name(name)))
    if given is not None:
        note = Note("rank-by-hand", f"Rank {given} was given by the caller.")
        return replace(recording, rank=given, notes=(*recording.notes, note))
    if recording.kind != "trace":
        return recording
    rank, notes = rank_of(dict(recording.meta), name)
    return replace(recording, rank=rank, notes=(*recording.notes, *notes))
