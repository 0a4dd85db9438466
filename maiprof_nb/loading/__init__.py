"""Files, folders and URLs -> recordings, whatever their names say."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from maiprof_nb import session_file
from maiprof_nb.errors import LoadError, UsageError
from maiprof_nb.loading import progress
from maiprof_nb.loading.limits import Limits, using
from maiprof_nb.loading.progress import Report
from maiprof_nb.loading.reading import base_name, recordings_of
from maiprof_nb.loading.restoring import restored
from maiprof_nb.loading.zones import in_zone, zone_of
from maiprof_nb.recording import Recording
from maiprof_nb.session import Session

Source = str | os.PathLike[str]


def load(
    source: Source | Iterable[Source],
    *,
    ranks: Mapping[str, int] | None = None,
    zone: str | None = None,
    report: Report | None = None,
    trust_paths: bool = False,
    limits: Limits | None = None,
) -> Session:
    """Load what belongs to one job.

    Parameters
    ----------
    source : str, path or iterable of them
        A file, a folder (everything in it), or any URL that fsspec can open. Formats are
        recognised by content: Kineto traces, CUDA memory snapshots, GPU metrics logs, and
        a session file (`Session.save`), which is loaded alone.
    ranks : Mapping of str to int, optional
        Rank of a file, by its name or path, where neither the file nor its name says it
        or they say it wrongly.
    zone : str, optional
        Time zone of logs whose time stamps are local without saying of where: a name
        (``Europe/Berlin``) or a distance from UTC (``+02:00``). Without it the whole hour
        is taken that makes them meet the other recordings.
    report : callable, optional
        Called with the share done, 0 to 1; an exception it raises stops the load.
    trust_paths : bool
        Whether a session file may name recordings outside its own folder.
    limits : Limits, optional
        How much a file may unpack to, and so on; by default what the environment says
        (`maiprof_nb.loading.limits.Limits`).

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
        If `ranks` names a file that is not among those loaded, there is no such `zone`, or
        either is given for a session file, which states them itself.

    Notes
    -----
    What took long to read is kept in a cache and opens at once the next time
    (`maiprof_nb.loading.cache`; ``MAIPROF_CACHE=off`` turns it off).
    """
    given = [source] if isinstance(source, str | os.PathLike) else list(source)
    if not given:
        raise LoadError("nothing was given to load", remedy="Give a file, a folder or a URL")
    if zone is not None:
        zone_of(zone)  # before what may take long
    if _is_session_file([os.fspath(one) for one in given], ranks, zone):
        with progress.reported_to(report), using(limits):
            return restored(
                os.fspath(given[0]), lambda one: recordings_of(one, {}), trust_paths=trust_paths
            )
    recordings: list[Recording] = []
    with progress.reported_to(report), using(limits):
        for number, one in enumerate(given):
            with progress.part(number, len(given)):
                recordings += recordings_of(os.fspath(one), ranks or {})
    _refuse_unused(ranks or {}, recordings)
    return Session([in_zone(one, zone) for one in recordings] if zone else recordings)


def _is_session_file(paths: list[str], ranks: Mapping[str, int] | None, zone: str | None) -> bool:
    many = len(paths) > 1  # then by name: opening each may be slow
    saved = [
        path
        for path in paths
        if (not many or path.endswith(session_file.SUFFIX)) and session_file.is_session_file(path)
    ]
    if not saved:
        return False
    if many:
        raise LoadError(
            "is a session file, and others were given beside it",
            where=saved[0],
            remedy="Load it alone; it names its recordings itself",
        )
    if ranks or zone:
        raise UsageError(
            "ranks= and zone= are not for a session file, which states them itself",
            where=saved[0],
            remedy="Load its recordings by their own names to state something else",
        )
    return True


def _refuse_unused(ranks: Mapping[str, int], recordings: list[Recording]) -> None:
    known = {recording.source for recording in recordings}
    unknown = sorted(set(ranks) - known - {base_name(source) for source in known})
    if unknown:
        raise UsageError(
            f"ranks= names a file that was not loaded: {unknown[0]}",
            remedy=f"Files here: {', '.join(sorted(map(base_name, known)))}",
        )
