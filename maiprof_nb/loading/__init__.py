"""Files, folders and URLs -> recordings, whatever their names say."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace

from maiprof_nb.errors import LoadError
from maiprof_nb.loading import registry, sources
from maiprof_nb.recording import Note, Recording
from maiprof_nb.session import Session

Source = str | os.PathLike[str]


def load(source: Source | Iterable[Source], *, ranks: Mapping[str, int] | None = None) -> Session:
    """Load what belongs to one job.

    Parameters
    ----------
    source : str, path or iterable of them
        A file, a folder (everything in it), or any URL that fsspec can open. Formats are
        recognised by content: Kineto traces, CUDA memory snapshots, GPU metrics logs.
    ranks : Mapping of str to int, optional
        Rank of a file, by its name or path, where neither the file nor its name says it
        or they say it wrongly.

    Returns
    -------
    Session
        Every recording on one axis of time.

    Raises
    ------
    LoadError
        If nothing can be read, or two traces claim one rank. In a folder, files that
        cannot be read are noted and the others are loaded.
    """
    given = [source] if isinstance(source, str | os.PathLike) else list(source)
    recordings: list[Recording] = []
    for one in given:
        recordings += recordings_of(os.fspath(one), ranks or {})
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
    recordings: list[Recording] = []
    refused: list[str] = []
    for name in found:
        try:
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
    data, notes = sources.content(name)
    recording = registry.read(data, name)
    stated = ranks.get(name, ranks.get(name.replace("\\", "/").rsplit("/", 1)[-1]))
    if stated is not None:
        notes.append(Note("rank-by-hand", f"Rank {stated} was given by the caller."))
    return replace(
        recording,
        rank=recording.rank if stated is None else stated,
        notes=(*notes, *recording.notes),
    )
