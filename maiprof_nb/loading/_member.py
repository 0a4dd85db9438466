"""One entry of an archive before it is unpacked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from maiprof_nb.recording import Note

Kind = Literal["file", "folder", "link", "end"]


@dataclass
class Member:
    """One entry of an archive.

    Parameters
    ----------
    name : str
        As it is written there, tricks included.
    kind : str
        ``file``, ``folder``, ``link`` for links, devices and all else without content, or
        ``end`` for notes on the archive itself, which come last.
    pieces : iterable of bytes
        The content; to be taken before the next member.
    notes : list of Note
        Filled while `pieces` are taken.
    problem, remedy : str
        Why there is no content, and what to do.
    """

    name: str
    kind: Kind = "file"
    pieces: Iterable[bytes] = ()
    notes: list[Note] = field(default_factory=list)
    problem: str = ""
    remedy: str = ""
