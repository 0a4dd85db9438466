"""Which rank a trace belongs to."""

from __future__ import annotations

import re
from typing import Any

from maiprof_nb.recording import Note

_ARCHIVES = (".zip", ".tar", ".tgz", ".gz", ".zst", ".xz", ".bz2")
_IN_NAME = re.compile(
    r"(?<![a-z])(?:(?:rank|worker)[-_]?(\d+)|TP-(\d+)(?!\d))", re.IGNORECASE
)  # TP-0 is a rank; tp4 is a size


def rank_of(meta: dict[str, Any], source: str) -> tuple[int | None, list[Note]]:
    """The rank the file states, or else the one its name states, or else none.

    Returns
    -------
    (int or None, list of Note)
        The rank, and a note where it had to be guessed or is unknown.
    """
    stated = meta.get("distributedInfo")
    if isinstance(stated, dict) and isinstance(stated.get("rank"), int):
        return stated["rank"], []
    found = _IN_NAME.search(_own_name(source))
    if found:
        rank = int(found[1] or found[2])
        text = f"The file states no rank; rank {rank} was taken from its name."
        return rank, [Note("rank-from-name", text)]
    return None, [Note("rank-unknown", "Neither the file nor its name states a rank.")]


def _own_name(source: str) -> str:
    """The file's name; with that of its archive in front, where it lies in one."""
    parts = source.replace("\\", "/").split("/")
    archived = [part for part in parts[:-1] if part.lower().endswith(_ARCHIVES)]
    return "/".join([parts[-1], *archived[-1:]])
