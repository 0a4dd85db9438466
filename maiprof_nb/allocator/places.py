"""Which life was where and when."""

from __future__ import annotations

import numpy as np
import pandas as pd

from maiprof_nb.allocator.lives import Ints
from maiprof_nb.allocator.rules import UNSPLIT_ROUNDING


class Places:
    """Lives by their addresses: which was where when. At one address, one at a time."""

    def __init__(self, lives: pd.DataFrame, ends: int) -> None:
        address = lives["address"].to_numpy(np.int64)
        self._distinct, rank = np.unique(address, return_inverse=True)
        self._span = ends + 2
        key = rank * self._span + lives["first_state"].to_numpy(np.int64)
        self._order = np.argsort(key, kind="stable")
        self._key, self._rank = key[self._order], rank[self._order]
        self._end = lives["end_state"].to_numpy(np.int64)[self._order]
        if "size_bytes" in lives:
            size = lives["size_bytes"].to_numpy(np.int64)
            self._size = size[self._order]
            reach = np.zeros(len(self._distinct), dtype=np.int64)
            np.maximum.at(reach, rank, size)
            self._reach = np.maximum.accumulate(self._distinct + reach)

    def holding(self, lives: pd.DataFrame) -> Ints:
        """For each of other lives the row of the one it began in; -1 if none."""
        address = lives["address"].to_numpy(np.int64)
        state = lives["first_state"].to_numpy(np.int64)
        found = np.full(len(lives), -1, dtype=np.int64)
        rank = np.searchsorted(self._distinct, address, side="right") - 1
        open_rows = np.flatnonzero(rank >= 0)
        while len(open_rows):
            at, when, behind = address[open_rows], state[open_rows], rank[open_rows]
            place = self._latest(behind, when)
            start = self._distinct[behind]
            hit = (place >= 0) & (self._end[place] > when) & (start + self._size[place] > at)
            found[open_rows[hit]] = self._order[place[hit]]
            rank[open_rows] -= 1
            further = ~hit & (behind > 0)
            further &= self._reach[np.maximum(behind - 1, 0)] > at
            open_rows = open_rows[further]
        return found

    def next_beside(self, lives: pd.DataFrame, least: Ints) -> Ints:
        """Of each life the nearest address, from its least size on, of one that lived with it."""
        start = lives["address"].to_numpy(np.int64) + least
        first, end = (lives[side].to_numpy(np.int64) for side in ("first_state", "end_state"))
        border = np.full(len(lives), np.iinfo(np.int64).max)
        rank = np.searchsorted(self._distinct, start)
        rows = np.flatnonzero(rank < len(self._distinct))
        while len(rows):
            ahead = self._distinct[rank[rows]]
            rows = rows[ahead - start[rows] <= UNSPLIT_ROUNDING]
            place = self._latest(rank[rows], end[rows] - 1)
            hit = (place >= 0) & (self._end[place] > first[rows])
            border[rows[hit]] = self._distinct[rank[rows[hit]]]
            rank[rows] += 1
            rows = rows[~hit]
            rows = rows[rank[rows] < len(self._distinct)]
        return border

    def _latest(self, rank: Ints, state: Ints) -> Ints:
        """The last life at an address that began by a state; -1 if none."""
        place = np.searchsorted(self._key, rank * self._span + state, side="right") - 1
        return np.where((place >= 0) & (self._rank[place] == rank), place, -1)
