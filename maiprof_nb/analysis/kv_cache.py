"""Growth of a key-value cache: bytes a token, and tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maiprof_nb.analysis.active_memory import MemoryLog
from maiprof_nb.analysis.memory_categories import categories_of


@dataclass(frozen=True, slots=True)
class CacheGrowth:
    """What a cache that is made anew for every token says about itself.

    Parameters
    ----------
    bytes_per_token : int
        Over all its tensors, as requested.
    tokens : int
        Held when it was largest.
    size_bytes : int
        Of the cache then.
    label : str
        Where it is made.
    """

    bytes_per_token: int
    tokens: int
    size_bytes: int
    label: str


def cache_growth(log: MemoryLog) -> CacheGrowth | None:
    """The growth of a cache recognised by its stack; None where there is none, or it is static.

    Every token makes each of its tensors anew a little larger; the step between their sizes,
    times the number of tensors, is the bytes of one token.
    """
    lives = log.allocations
    cached = lives[(categories_of(log)["category"] == "KV cache").to_numpy(bool)]
    if cached.empty:
        return None
    by_stack = cached.groupby("stack")["size_bytes"].sum()
    stack = by_stack.idxmax()
    cached = cached[cached["stack"] == stack].sort_values("first_state")
    size = cached["requested_bytes"].fillna(cached["size_bytes"]).to_numpy(np.int64)
    growth = np.diff(size)
    if not (growth > 0).any():
        return None
    first, end = (np.sort(cached[name].to_numpy()) for name in ("first_state", "end_state"))
    # tensors alive just before one of them is made anew
    alive = np.searchsorted(first, first, "left") - np.searchsorted(end, first, "left")
    tensors = max(int(np.median(alive)), 1)
    each = int(np.median(growth[growth > 0])) * tensors
    total = int(size.max()) * tensors
    label = log.stacks.set_index("stack")["label"].astype(object)
    return CacheGrowth(each, round(total / each), total, str(label.get(stack, "")))
