"""The allocator's rules, against PyTorch's constants and by hand; then any requests at all."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maiprof_nb.allocator import (
    MIB,
    AllocatorModel,
    AllocatorSettings,
    OutOfMemoryError,
    largest_request,
    rounded,
    rounded_all,
    segment_size,
)

EXPANDABLE = AllocatorSettings(expandable=True)


@pytest.mark.parametrize(
    ("request_bytes", "block", "segment"),
    [  # kMinBlockSize, kSmallSize, kSmallBuffer, kMinLargeAlloc, kRoundLarge of PyTorch
        (0, 512, 2 * MIB),
        (1, 512, 2 * MIB),
        (513, 1024, 2 * MIB),
        (MIB, MIB, 2 * MIB),
        (MIB + 1, MIB + 512, 20 * MIB),
        (10 * MIB - 512, 10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB, 10 * MIB),
        (10 * MIB + 1, 10 * MIB + 512, 12 * MIB),
    ],
)
def test_rounding_and_segment(request_bytes, block, segment):
    assert (rounded(request_bytes), segment_size(rounded(request_bytes))) == (block, segment)


@pytest.mark.parametrize("size", [2 * MIB, 3 * MIB, 20 * MIB, 21 * MIB + 5, 10 * MIB - 1])
def test_the_largest_request_is_served_by_what_it_was_asked_of(size):
    most = largest_request(size)
    assert segment_size(rounded(most)) <= size
    assert segment_size(rounded(most + 1)) > size


@given(st.integers(0, 2**36), st.lists(st.sampled_from([0, 1, 2, 4, 8]), min_size=16, max_size=16))
def test_many_are_rounded_as_one(request_bytes, divisions):
    stated = {"roundup_power2_divisions": {str(1 << p): d for p, d in enumerate(divisions)}}
    made = AllocatorSettings.of_snapshot(stated)
    many = rounded_all(np.array([request_bytes], dtype=np.int64), made)
    assert rounded(request_bytes, made) == many[0]


def test_settings_as_a_snapshot_states_them():
    stated = {"max_split_size": 134217728, "expandable_segments": True}
    assert AllocatorSettings.of_snapshot(stated) == AllocatorSettings(134217728, expandable=True)
    assert AllocatorSettings.of_snapshot({"max_split_size": -1}) == AllocatorSettings()
    assert AllocatorSettings.of_snapshot({}) == AllocatorSettings()


def test_best_fit_split_and_merge():
    model = AllocatorModel()
    a, b, c, d = (model.place(size * MIB).address for size in (4, 2, 6, 3))  # 15 of 20 MiB
    assert model.reserved_bytes == 20 * MIB
    model.give_up(a)
    model.give_up(c)
    # free: 4 MiB at a, 6 at c, 5 at the end; 4.5 fits best at the end, but leaves no 1 MiB
    unsplit = model.place(4 * MIB + MIB // 2)
    assert unsplit.address == d + 3 * MIB
    assert unsplit.size_bytes == 5 * MIB
    model.give_up(b)  # a, b and c are one block of 12 MiB now
    assert model.place(12 * MIB).address == a
    assert model.reserved_bytes == 20 * MIB


def test_streams_pools_and_sizes_share_nothing():
    model = AllocatorModel()
    for size, stream, pool_id in [(512, 0, "(0, 0)"), (512, 7, "(0, 0)"), (512, 0, "(1, 0)")]:
        model.place(size, stream, pool_id)
    model.place(2 * MIB)
    assert [s.size_bytes // MIB for s in model.segments.values()] == [2, 2, 2, 20]


def test_max_split_size():
    model = AllocatorModel(AllocatorSettings(max_split_bytes=32 * MIB))
    big = model.place(64 * MIB).address
    model.give_up(big)
    assert model.place(30 * MIB).address != big  # smaller ones may not take it
    assert model.place(40 * MIB).address != big  # nor one that would waste 20 MiB
    assert model.place(45 * MIB).size_bytes == 64 * MIB  # whole, never split


def test_cached_memory_goes_back_when_the_device_is_full():
    model = AllocatorModel(limit_bytes=50 * MIB)
    model.give_up(model.place(30 * MIB).address)
    kept = model.place(18 * MIB)  # out of the 30
    with pytest.raises(OutOfMemoryError):
        model.place(40 * MIB)
    model.give_up(kept.address)
    model.place(40 * MIB)  # the 30 went back
    assert (model.reserved_bytes, model.peak_reserved_bytes) == (40 * MIB, 40 * MIB)


def test_expandable_segments_grow_and_shrink_in_steps():
    model = AllocatorModel(EXPANDABLE)
    a = model.place(30 * MIB).address
    assert model.reserved_bytes == 40 * MIB  # steps of 20
    b = model.place(25 * MIB).address
    assert b == a + 30 * MIB
    assert model.reserved_bytes == 60 * MIB
    model.give_up(a)
    assert model.return_cached() == 20 * MIB  # of 0..30 MiB one whole step; of 55..60 none
    assert model.place(35 * MIB).address == b + 25 * MIB  # 0..30 is too short for it
    assert model.reserved_bytes == 40 * MIB + 40 * MIB
    model.place(10 * MIB)
    assert model.reserved_bytes == 80 * MIB  # fits into 20..30, which stayed


def test_the_end_of_what_is_mapped_is_kept_for_large_requests():
    """20 MiB fit the 21 free at the end better than a hole of 22, but the end can still grow."""
    model = AllocatorModel(EXPANDABLE)
    hole = model.place(22 * MIB).address
    model.place(17 * MIB)
    end = model.place(21 * MIB).address
    model.give_up(hole)
    model.give_up(end)
    assert model.place(20 * MIB).address == hole


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 48 * MIB), st.integers(0, 3), st.integers(0, 1)), max_size=60
    ),
    st.sampled_from([None, EXPANDABLE, AllocatorSettings(max_split_bytes=21 * MIB)]),
)
def test_blocks_always_tile_their_segments(requests, chosen):
    """A request, or for 2 and 3 a free of an earlier one; of 0 bytes: all cached is returned."""
    model, live = AllocatorModel(chosen), []
    for size, action, stream in requests:
        if action < 2 or not live:
            live.append(model.place(size, stream).address)
        elif size == 0:
            model.return_cached()
        else:
            model.give_up(live.pop(size % len(live)))
        reserved = allocated = 0
        for segment in model.segments.values():
            blocks = segment.blocks
            assert blocks[0].address == segment.address
            for one, other in itertools.pairwise(blocks):
                assert one.address + one.size_bytes == other.address
                assert not (one.free and other.free)
            assert segment.size_bytes == sum(b.size_bytes for b in blocks if b.mapped)
            reserved += segment.size_bytes
            allocated += sum(b.size_bytes for b in blocks if b.allocated)
        assert (model.reserved_bytes, model.allocated_bytes) == (reserved, allocated)
