"""A session file -> the session it describes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from maiprof_nb import session_file
from maiprof_nb.errors import LoadError, MaiprofError
from maiprof_nb.loading import progress
from maiprof_nb.loading.zones import in_zone
from maiprof_nb.placement import spaced, with_stated
from maiprof_nb.recording import Note, Recording
from maiprof_nb.session import Session
from maiprof_nb.session_file import SavedRecording, SavedSession
from maiprof_nb.timebase import NS_PER_S


def restored(path: str, read: Callable[[str], list[Recording]], *, trust_paths: bool) -> Session:
    """The session of a session file, each recording in its place.

    Parameters
    ----------
    path : str
        Path or URL of the session file.
    read : callable
        Reads one file into its recordings.
    trust_paths : bool
        Whether it may name files outside its own folder.

    Raises
    ------
    LoadError
        If the session file is damaged, or a recording has moved or changed since.
    """
    saved = session_file.read(path)
    files: dict[str, list[Recording]] = {}
    places = [
        session_file.location(one.source, path, trust_paths=trust_paths) for one in saved.recordings
    ]
    _refuse_changed(saved, places, path)
    for number, place in enumerate(dict.fromkeys(places)):
        with progress.part(number, len(set(places))):
            files[place] = read(place)
    recordings = [
        _as_stated(_one_of(files[place], place, one, path), one, path)
        for place, one in zip(places, saved.recordings, strict=True)
    ]
    session = Session(recordings)
    moved_ns = (
        saved.epoch_ns - session.epoch_ns
        if saved.epoch_ns is not None and session.epoch_ns is not None
        else 0
    )
    stated = {
        number: one.placement.placement(moved_ns)
        for number, one in enumerate(saved.recordings)
        if one.placement is not None
    }
    return Session(recordings, axis=with_stated(session.axis, recordings, stated))


def _refuse_changed(saved: SavedSession, places: list[str], path: str) -> None:
    known: dict[str, tuple[int, str]] = {}
    for one, place in zip(saved.recordings, places, strict=True):
        try:
            if place not in known:
                known[place] = session_file.fingerprint(place)
        except (OSError, ValueError, ImportError) as problem:
            raise LoadError(
                f"a recording of the session is not there: {one.source}",
                where=path,
                remedy="Put it back beside the session file, or load the recordings that are left "
                "and save the session again",
            ) from problem
        if known[place] != (one.size_bytes, one.ends_sha256):
            raise LoadError(
                f"a recording of the session has changed since it was saved: {one.source}",
                where=path,
                remedy="Load the recordings themselves, check their places and save the session "
                "again",
            )


def _one_of(recordings: list[Recording], place: str, one: SavedRecording, path: str) -> Recording:
    wanted = f"{place}/{one.member}" if one.member else place
    found = [recording for recording in recordings if recording.source == wanted]
    if len(found) == 1:
        return found[0]
    if len(recordings) == 1 and not one.member:
        return recordings[0]
    raise LoadError(
        f"a recording of the session is not in its file: {one.member or one.source}", where=path
    )


def _as_stated(recording: Recording, one: SavedRecording, path: str) -> Recording:
    if one.rank is not None and one.rank != recording.rank:
        note = Note("rank-by-hand", f"Rank {one.rank} was given by the session file.")
        recording = replace(recording, rank=one.rank, notes=(*recording.notes, note))
    try:
        if one.zone is not None:
            recording = in_zone(recording, one.zone)
        if one.interval_ns is not None:
            recording = spaced(recording, one.interval_ns / NS_PER_S)
    except MaiprofError as problem:
        raise LoadError(problem.problem, where=path, remedy=problem.remedy) from problem
    return recording
