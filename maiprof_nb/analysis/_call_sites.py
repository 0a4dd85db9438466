"""Whose line of code a call comes from."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.errors import MaiprofError
from maiprof_nb.session import Session

Ints = npt.NDArray[np.int64]

_LIBRARIES = re.compile(
    r"^<|(?:^|/)(?:torch|numpy|pandas|concurrent|threading|multiprocessing|asyncio|queue|selectors"
    r"|runpy|importlib|contextlib)(?:/|\.py)|site-packages/|/lib/python3|^nn\.Module: "
)


def is_user_code(names: pd.Series) -> npt.NDArray[np.bool_]:
    """Whether each Python function, named as the profiler does, is of neither a library nor C."""
    codes, texts = pd.factorize(names.astype("str"))
    own = np.array([not _LIBRARIES.search(text) for text in texts], dtype=bool)
    return own[codes] if len(texts) else np.empty(0, dtype=bool)


def nearest(own: Ints, parent: Ints) -> Ints:
    """Own code, or that of the nearest caller that has one, or -1."""
    found, ancestor = own.copy(), parent.copy()
    while (open_ := (found < 0) & (ancestor >= 0)).any():
        found[open_] = own[ancestor[open_]]
        ancestor[open_] = parent[ancestor[open_]]
    return found


def farthest(own: Ints, parent: Ints) -> Ints:
    """The code of the outermost caller that has one, or own, or -1."""
    found, ancestor = own.copy(), parent.copy()
    while (open_ := ancestor >= 0).any():
        outer = own[ancestor[open_]]
        found[open_] = np.where(outer >= 0, outer, found[open_])
        ancestor[open_] = parent[ancestor[open_]]
    return found


def recorded_line(session: Session, recording: int, event: int) -> str | None:
    """The user's innermost line in the stack that old traces keep in an operator's args.

    The file is read again for it, so ask for few events. None where nothing is kept, or the
    file is gone.
    """
    try:
        stack = session.recordings[recording].args(event).get("Call stack")
    except MaiprofError:
        return None
    return innermost_line(str(stack or ""))


def innermost_line(stack: str) -> str | None:
    """The first of the user's own lines in a stack as old traces write it, innermost first."""
    frames = (frame.strip() for frame in stack.split(";"))
    return next((frame for frame in frames if frame and not _LIBRARIES.search(frame)), None)
