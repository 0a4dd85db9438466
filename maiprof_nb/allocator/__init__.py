"""The rules of PyTorch's CUDA caching allocator, for one device.

What is modelled: rounding (with ``roundup_power2_divisions``), small and large blocks, segments
of 2 MiB, 20 MiB or the rounded request, best fit within one stream, pool and size class,
splitting, ``max_split_size``, merging, return of free segments, and expandable segments.
Not modelled: garbage collection by threshold, the order in which a failing request with
``max_split_size`` returns single segments (here it returns all), and what other processes take.
"""

from maiprof_nb.allocator.block_lives import BlockLives, block_lives
from maiprof_nb.allocator.blocks import Block, Segment
from maiprof_nb.allocator.lives import doing
from maiprof_nb.allocator.model import AllocatorModel, OutOfMemoryError
from maiprof_nb.allocator.places import Places
from maiprof_nb.allocator.rules import (
    DEFAULT_POOL,
    LARGE_SEGMENT,
    MIB,
    SMALL_REQUEST_LIMIT,
    SMALL_SEGMENT,
    SMALLEST_BLOCK,
    UNSPLIT_ROUNDING,
    AllocatorSettings,
    largest_request,
    rounded,
    rounded_all,
    segment_size,
)
from maiprof_nb.allocator.segment_lives import segment_lives

__all__ = [
    "DEFAULT_POOL",
    "LARGE_SEGMENT",
    "MIB",
    "SMALLEST_BLOCK",
    "SMALL_REQUEST_LIMIT",
    "SMALL_SEGMENT",
    "UNSPLIT_ROUNDING",
    "AllocatorModel",
    "AllocatorSettings",
    "Block",
    "BlockLives",
    "OutOfMemoryError",
    "Places",
    "Segment",
    "block_lives",
    "doing",
    "largest_request",
    "rounded",
    "rounded_all",
    "segment_lives",
    "segment_size",
]
