"""Bands too small to draw one by one, added up by group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MergedBands:
    """Groups of allocations, each drawn as one band of changing height.

    Parameters
    ----------
    group : array of int64, shape (groups,)
        Their codes, largest first.
    bytes_, count : array of float64 and int64, shape (groups, columns)
        What lives at the moment of each column: bytes, and number of allocations.
    allocations : array of int64, shape (groups,)
        How many allocations of the group live at any column.
    left : array of bool
        For each allocation given: True where its group is too small even so.
    """

    group: Ints
    bytes_: Floats
    count: Ints
    allocations: Ints
    left: npt.NDArray[np.bool_]


def merged_bands(
    first: Ints, end: Ints, size: Floats, group: Ints, *, columns: int, least: float, most: int
) -> MergedBands:
    """Add allocations up by group and column.

    Parameters
    ----------
    first, end : array of int64
        Columns in which each allocation lives, ``first <= c < end``.
    size : array of float64
        Its bytes.
    group : array of int64
        Code of its group.
    columns : int
        Width of the picture.
    least : float
        Groups that never reach so many bytes are left out.
    most : int
        At most so many groups: those with the highest maximum.
    """
    codes, place = np.unique(group, return_inverse=True)
    shape, cells = (len(codes), columns + 1), len(codes) * (columns + 1)
    opens, closes = place * (columns + 1) + first, place * (columns + 1) + end

    def over_columns(weight: Floats | None) -> Floats:
        change = np.bincount(opens, weight, cells) - np.bincount(closes, weight, cells)
        return np.asarray(change.reshape(shape).cumsum(axis=1)[:, :columns], dtype=np.float64)

    bytes_, count = over_columns(size), over_columns(None)
    highest = bytes_.max(axis=1, initial=0)
    kept = np.argsort(-highest, kind="stable")[:most]
    kept = kept[highest[kept] >= max(least, 1.0)]
    return MergedBands(
        group=codes[kept].astype(np.int64),
        bytes_=bytes_[kept],
        count=count[kept].astype(np.int64),
        allocations=np.bincount(place, minlength=len(codes))[kept].astype(np.int64),
        left=~np.isin(place, kept),
    )
