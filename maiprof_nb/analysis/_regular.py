"""Whether things come at one distance."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_LOOSE = 0.05  # of the period: an epoch may lose a step to its remainder


def period(at: npt.NDArray[np.int64], count: int) -> int | None:
    """The one distance of these positions among `count`, none missing before, between or after."""
    if len(at) < 2:
        return None
    distances = np.diff(at)
    found = int(np.median(distances))
    slack = max(1, round(_LOOSE * found)) if len(at) > 2 else 0
    regular = found >= 2 and bool((np.abs(distances - found) <= slack).all())
    complete = at[0] - found <= slack and at[-1] + found >= count - slack
    return found if regular and complete else None
