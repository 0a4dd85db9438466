"""Files, folders and URLs -> recordings, whatever their names say."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace

from maiprof_nb.errors import LoadError, UsageError
from maiprof_nb.loading import cache, progress, registry, sources
from maiprof_nb.loading.ahead import read_ahead
from maiprof_nb.loading.progress import Report
from maiprof_nb.loading.rank import rank_of
from maiprof_nb.recording import Note, Recording
from maiprof_nb.session import Session
from maiprof_nb.tables import SCHEMAS

Source = str | os.PathLike[str]


def load(
    source: Source | Iterable[Source],
    *,
    ranks: Mapping[str, int] | None = None,
    report: Report | None = None,
) -> Session:
    """Load what belongs to one job.

    Parameters
    ----------
    source : str, path or iterable of them
        A file, a folder (everything in it), or any URL that fsspec can open. Formats are
        recognised by content: Kineto traces, CUDA memory snapshots, GPU metrics logs.
    ranks : Mapping of str to int, optional
        Rank of a file, by its name or path, where neither the file nor its name says it
        or they say it wrongly.
    report : callable, optional
        Called with the share done, 0 to 1; an exception it raises stops the load.

    Returns
    -------
    Session
        Every recording on one axis of time.

    Raises
    ------
    LoadError
        If nothing can be read, or two traces claim one rank. In a folder, files that
        cannot be read are noted and the others are loaded.
    UsageError
        If `ranks` names a file that is not among those loaded.

    Notes
    -----
    What took long to read is kept in a cache and opens at once the next time
    (`maiprof_nb.loading.cache`; ``MAIPROF_CACHE=off`` turns it off).
    """
    given = [source] if isinstance(source, str | os.PathLike) else list(source)
    if not given:
        raise LoadError("nothing was given to load", remedy="Give a file, a folder or a URL")
    recordings: list[Recording] = []
    with progress.reported_to(report):
        for number, one in enumerate(given):
            with progress.part(number, len(given)):
                recordings += recordings_of(os.fspath(one), ranks or {})
    _refuse_unused(ranks or {}, recordings)
    return Session(recordings)


def recordings_of(path_or_url: str, ranks: Mapping[str, int]) -> list[Recording]:
    """The recordings of one path: one of a file, those that can be read of a folder.

    Raises
    ------
    LoadError
        If it is a file that cannot be read, or a folder in which none can.
    """
    found = sources.files(path_or_url)
    if found == [path_or_url]:
        return [_read(path_or_url, ranks)]
    read_ahead(found)
    recordings: list[Recording] = []
    refused: list[str] = []
    for number, name in enumerate(found):
        try:
            with progress.part(number, len(found)):
                recordings.append(_read(name, ranks))
        except LoadError as problem:
            refused.append(problem.sentence)
    if not recordings:
        raise LoadError(
            f"none of the {len(found)} files in the folder can be read; the first: {refused[0]}",
            where=path_or_url,
        )
    if refused:
        text = f"Files of the folder were left out; the first: {refused[0]}"
        first = recordings[0]
        noted = (*first.notes, Note("file-left-out", text, len(refused)))
        recordings[0] = replace(first, notes=noted)
    return recordings


def _read(name: str, ranks: Mapping[str, int]) -> Recording:
    return _with_rank(cache.fetch(name) or read_through(name), name, ranks)


def read_through(name: str) -> Recording:
    """Read a file, from the cache if its content is known there, and else into it."""
    data, notes = sources.content(name)
    if len(data) < cache.MIN_BYTES or cache.folder() is None:
        return _parsed(data, name, notes)
    key = cache.content_key(data, notes)
    found = cache.fetch(name, key)
    if found is None:
        found = _parsed(data, name, notes)
        cache.store(found, key)
    return found


def _parsed(data: bytes, name: str, notes: list[Note]) -> Recording:
    recording = registry.read(data, name)
    for table, frame in recording.tables.items():
        SCHEMAS[table].validate(frame)
    return replace(recording, notes=(*notes, *recording.notes))


def _refuse_unused(ranks: Mapping[str, int], recordings: list[Recording]) -> None:
    known = {recording.source for recording in recordings}
    unknown = sorted(set(ranks) - known - {_base_name(source) for source in known})
    if unknown:
        raise UsageError(
            f"ranks= names a file that was not loaded: {unknown[0]}",
            remedy=f"Files here: {', '.join(sorted(map(_base_name, known)))}",
        )


def _base_name(path_or_url: str) -> str:
    return path_or_url.replace("\\", "/").rsplit("/", 1)[-1]


def _with_rank(recording: Recording, name: str, ranks: Mapping[str, int]) -> Recording:
    given = ranks.get(name, ranks.get(_base_name(name)))
    if given is not None:
        note = Note("rank-by-hand", f"Rank {given} was given by the caller.")
        return replace(recording, rank=given, notes=(*recording.notes, note))
    if recording.kind != "trace":
        return recording
    rank, notes = rank_of(dict(recording.meta), name)
    return replace(recording, rank=rank, notes=(*recording.notes, *notes))
