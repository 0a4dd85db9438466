"""How many of something run at a moment: sums of intervals' weights as step functions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Levels:
    """A step function: its moments of change, and its level from each of them on."""

    at_ns: Ints
    level: Floats

    def capped(self, most: float) -> Levels:
        """The same, but never more than `most`."""
        return Levels(self.at_ns, np.minimum(self.level, most))

    def integral_ns(self, edges_ns: Ints) -> Floats:
        """Its integral between each two neighbouring edges, which ascend."""
        if len(self.at_ns) == 0:
            return np.zeros(max(len(edges_ns) - 1, 0))
        place = np.searchsorted(self.at_ns, edges_ns, side="right") - 1
        last = np.maximum(place, 0)
        since = np.where(place < 0, 0, edges_ns - self.at_ns[last])
        total: Floats = self._done[last] + self.level[last] * since
        return np.diff(total)

    @cached_property
    def _done(self) -> Floats:
        """Its integral up to each moment of change."""
        return np.append(0.0, np.cumsum(self.level[:-1] * np.diff(self.at_ns)))


def levels(start_ns: Ints, dur_ns: Ints, weight: Floats) -> Levels:
    """The sum of the weights of the intervals that cover each moment."""
    edges = np.concatenate((start_ns, start_ns + dur_ns))
    at, place = np.unique(edges, return_inverse=True)
    change = np.bincount(place, np.concatenate((weight, -weight)), minlength=len(at))
    count = np.bincount(place, np.repeat([1, -1], len(weight)), minlength=len(at)).cumsum()
    # What is left of adding and taking away fractions is no running interval.
    return Levels(at, np.where(count > 0.5, change.cumsum(), 0.0))
