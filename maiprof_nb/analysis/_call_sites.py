"""Whose line of code a call comes from."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pandas as pd

Ints = npt.NDArray[np.int64]

_LIBRARIES = re.compile(
    r"^<|(?:^|/)(?:torch|torchvision|torchaudio|numpy|scipy|pandas|PIL|tqdm|concurrent|threading"
    r"|multiprocessing|asyncio|queue|selectors|runpy|importlib|contextlib)(?:/|\.py)"
    r"|site-packages/|/lib/python3|^nn\.Module: "
)


def is_user_code(names: pd.Series) -> npt.NDArray[np.bool_]:
    """Whether each Python function, named as the profiler does, is of neither a library nor C."""
    categories = names.astype("category").cat
    own = [not _LIBRARIES.search(text) for text in categories.categories]
    return np.array([*own, False], dtype=bool)[categories.codes.to_numpy()]


def farthest(own: Ints, parent: Ints) -> Ints:
    """The code of the outermost caller that has one, or own, or -1."""
    found, ancestor = own.copy(), parent.copy()
    while (open_ := ancestor >= 0).any():
        outer = own[ancestor[open_]]
        found[open_] = np.where(outer >= 0, outer, found[open_])
        ancestor[open_] = parent[ancestor[open_]]
    return found
