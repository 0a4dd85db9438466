"""Where the notebooks and sample recordings that come with the project are."""

from __future__ import annotations

import site
import sys
from pathlib import Path
from typing import Literal

from maiprof_nb.errors import MaiprofError

SAMPLE = "case_study/before"

_CLONE = Path(__file__).resolve().parents[1]


def shipped_folder(name: Literal["notebooks", "sample_traces"]) -> Path:
    """The folder ``name`` of the clone, or of the installed package.

    Raises
    ------
    MaiprofError
        If it is in neither place, as after an installation with ``pip --target``.
    """
    places = [Path(prefix) / "share" / "maiprof_nb" for prefix in (sys.prefix, site.getuserbase())]
    if in_clone():
        places.insert(0, _CLONE)
    for place in places:
        if (place / name).is_dir():
            return place / name
    raise MaiprofError(
        f"the folder {name} that comes with maiprof_nb is not there",
        where=", ".join(map(str, places)),
        remedy="Install maiprof_nb into a virtual environment, or work in a clone",
    )


def in_clone() -> bool:
    """Whether this package runs from a clone, where notebooks may be written to."""
    return (_CLONE / "pyproject.toml").is_file()
