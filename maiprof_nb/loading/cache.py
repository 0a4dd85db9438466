"""Recordings that were read before, as memory-mapped Arrow files.

An entry is a folder named by the hash of the file's content, so that a copy or a renamed file
finds it too. Next to the entries an index says which content a path had when it was last seen,
so that an unchanged file need not be hashed again. Entries are written beside and moved into
place whole; an entry that does not read is dropped and the file is read again.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import fsspec
import msgspec
import pandas as pd
import pyarrow as pa

from maiprof_nb.loading._event_args import EventArguments
from maiprof_nb.recording import Note, Recording
from maiprof_nb.tables import SCHEMAS
from maiprof_nb.tables.arrow import from_arrow, to_arrow
from maiprof_nb.timebase import Clock, TimeWindow

_LOG = logging.getLogger(__name__)
_LAYOUT = 1  # raise it when what a reader makes of a file changes
MIN_BYTES = 4 * 2**20  # of unpacked content: less than this is read faster than looked up
_MANIFEST = "recording.json"


class ArrowTables(Mapping[str, pd.DataFrame]):
    """Tables in a folder of Arrow files; one becomes a DataFrame when it is first asked for."""

    def __init__(self, folder: Path, names: list[str]) -> None:
        self._mapped = {name: _mapped(folder / f"{name}.arrow") for name in names}
        self._frames: dict[str, pd.DataFrame] = {}

    def arrow(self, name: str) -> pa.Table:
        """One table as it lies in the file."""
        return self._mapped[name]

    def __getitem__(self, name: str) -> pd.DataFrame:
        if name not in self._frames:
            self._frames[name] = from_arrow(self._mapped[name], SCHEMAS[name])
        return self._frames[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._mapped)

    def __len__(self) -> int:
        return len(self._mapped)


def folder() -> Path | None:
    """Where entries lie: ``MAIPROF_CACHE``, or the user's cache folder; None if it is ``off``."""
    stated = os.environ.get("MAIPROF_CACHE", "")
    if stated.lower() in {"off", "0", "no", "none"}:
        return None
    base = Path(stated) if stated else _user_cache() / "maiprof_nb"
    return base / f"v{_LAYOUT}-{_schema_hash()}"


def limit_bytes() -> int:
    """How much the cache may hold: ``MAIPROF_CACHE_GB``, 20 by default."""
    return int(float(os.environ.get("MAIPROF_CACHE_GB", "20")) * 1e9)


def fetch(source: str, key: str | None = None) -> Recording | None:
    """The recording of a file, if it was read before and has not changed.

    Parameters
    ----------
    source : str
        Path or URL.
    key : str, optional
        `content_key` of the file, if it was read already; else the path, its size and its
        time of change decide.

    Returns
    -------
    Recording or None
        Without rank, which belongs to the name and not to the content.
    """
    root = folder()
    if root is None:
        return None
    known = key is not None
    key = key or _seen_before(root, source)
    if key is None:
        return None
    entry = root / "entries" / key
    try:
        found = _read(entry, source)
        os.utime(entry / _MANIFEST)  # used now: last to be dropped
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowInvalid) as problem:
        _LOG.warning("a damaged cache entry is dropped: %s (%s)", entry, problem)
        shutil.rmtree(entry, ignore_errors=True)
        return None
    if known:
        _remember(root, source, key)
    return found


def store(recording: Recording, key: str) -> None:
    """Keep a recording under the `content_key` of its file. Failing to is no error."""
    root = folder()
    if root is None:
        return
    try:
        _write(recording, root / "entries", key)
        _remember(root, recording.source, key)
        _evict(root / "entries", limit_bytes())
    except (OSError, TypeError, msgspec.MsgspecError) as problem:
        _LOG.info("not cached: %s (%s)", recording.source, problem)


def content_key(data: bytes, notes: list[Note]) -> str:
    """Names the content of a file: the same for copies, other for other content.

    Parameters
    ----------
    data : bytes
        The unpacked content.
    notes : list of Note
        What was noted while unpacking it.
    """
    digest = hashlib.sha256(data)
    digest.update(repr([(note.code, note.count) for note in notes]).encode())
    return digest.hexdigest()


def _write(recording: Recording, entries: Path, key: str) -> None:
    entries.mkdir(parents=True, exist_ok=True)
    if (entries / key).exists():
        return
    made = Path(tempfile.mkdtemp(prefix=".making-", dir=entries))
    try:
        for name, frame in recording.tables.items():
            table = to_arrow(frame)
            with (
                pa.OSFile(str(made / f"{name}.arrow"), "wb") as file,
                pa.ipc.new_file(file, table.schema) as writer,
            ):
                writer.write_table(table)
        span = recording.span
        manifest = {
            "kind": recording.kind,
            "format": recording.format,
            "clock": asdict(recording.clock),
            "notes": [asdict(note) for note in recording.notes],
            "events": dict(recording.events),
            "meta": dict(recording.meta),
            "span": [span.start_ns, span.end_ns],
            "firsts": list(getattr(recording.args, "firsts", ())),
            "tables": list(recording.tables),
        }
        (made / _MANIFEST).write_bytes(msgspec.json.encode(manifest))
        made.rename(entries / key)
    except OSError:
        if not (entries / key).exists():  # else another process was first, with the same content
            raise
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _read(entry: Path, source: str) -> Recording:
    manifest = json.loads((entry / _MANIFEST).read_bytes())
    firsts = tuple(manifest["firsts"])
    extra: dict[str, Any] = {"args": EventArguments(source, firsts)} if firsts else {}
    return Recording(
        source=source,
        kind=manifest["kind"],
        format=manifest["format"],
        tables=ArrowTables(entry, manifest["tables"]),
        clock=Clock(**manifest["clock"]),
        notes=tuple(Note(**note) for note in manifest["notes"]),
        events=manifest["events"],
        meta=manifest["meta"],
        known_span=TimeWindow(*manifest["span"]),
        **extra,
    )


def _mapped(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as file:
        return pa.ipc.open_file(file).read_all()


def _evict(entries: Path, limit: int) -> None:
    """Drop the entries that were not used for longest until the rest fits."""
    found = []
    for manifest in entries.glob(f"*/{_MANIFEST}"):
        size = sum(file.stat().st_size for file in manifest.parent.iterdir())
        found.append((manifest.stat().st_mtime, size, manifest.parent))
    total = sum(size for _, size, _ in found)
    for _, size, entry in sorted(found)[:-1]:  # never the one just written
        if total <= limit:
            return
        shutil.rmtree(entry, ignore_errors=True)
        total -= size


def _seen_before(root: Path, source: str) -> str | None:
    try:
        return (root / "index" / _state(source)).read_text(encoding="ascii")
    except (OSError, ValueError, NotImplementedError):
        return None


def _remember(root: Path, source: str, key: str) -> None:
    index = root / "index"
    index.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=index)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(key)
    Path(name).replace(index / _state(source))


def _state(source: str) -> str:
    """Changes when the file does: place, size, time of change."""
    system, path = fsspec.core.url_to_fs(source)
    return hashlib.sha256(f"{source}\0{system.ukey(path)}".encode()).hexdigest()


def _schema_hash() -> str:
    columns = [(s.name, [(c.name, c.dtype) for c in s.columns]) for s in SCHEMAS.values()]
    return hashlib.sha256(repr(columns).encode()).hexdigest()[:12]


def _user_cache() -> Path:
    stated = os.environ.get("XDG_CACHE_HOME")
    return Path(stated) if stated else Path.home() / ".cache"
