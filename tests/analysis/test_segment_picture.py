"""Segments as cells: sums and order by hand, and every corpus snapshot within its bounds."""

from __future__ import annotations

import numpy as np
import pytest

import maiprof_nb
from maiprof_nb.allocator import MIB, AllocatorSettings
from maiprof_nb.analysis.allocator_state import allocator_history, pieces_of, state_of
from maiprof_nb.analysis.segment_picture import (
    HOLE,
    MERGED,
    USED,
    WAITS,
    one_segment,
    row_each,
    segment_picture,
)
from maiprof_nb.errors import UsageError
from tests.analysis.made_memory_logs import LoggedAllocator


def last_cut(allocator, state=None):
    history = allocator_history(allocator.session())
    return history, pieces_of(history, history.last_state if state is None else state)


@pytest.fixture
def comb():
    """A segment of 3 MiB free, 2 keep, 5 free, 4 other, 6 free; one of 12 free; two more.

    Those are of 30 MiB in use on stream 7, and a small one with 512 B in use.
    """
    allocator = LoggedAllocator()
    first = allocator.alloc(3 * MIB, name="gone")
    allocator.alloc(2 * MIB, name="keep")
    middle = allocator.alloc(5 * MIB, name="gone")
    allocator.alloc(4 * MIB, name="other")
    whole = allocator.alloc(12 * MIB, name="gone")
    allocator.alloc(30 * MIB, stream=7, name="copy")
    allocator.alloc(100, name="scalar")
    for address in (first, middle, whole):
        allocator.free(address)
    return allocator


def test_cells_and_groups_by_hand(comb):
    history, cut = last_cut(comb)
    found = segment_picture(cut, row_each(history), columns=1000)
    # large segments before small ones, streams in order
    assert found.groups[["pool", "stream", "segments"]].to_numpy().tolist() == [
        ["large", 0, 2],
        ["large", 7, 1],
        ["small", 0, 1],
    ]
    assert found.groups["reserved_bytes"].tolist() == [32 * MIB, 30 * MIB, 2 * MIB]
    assert found.groups["unused_bytes"].tolist() == [26 * MIB, 0, 2 * MIB - 512]
    assert found.groups["one_per_row"].all()
    assert found.groups["row_bytes"].tolist() == [32 * MIB, 32 * MIB, 2 * MIB]
    assert found.cells.tolist() == [5, 1, 1, 2]
    sizes = [3, 2, 5, 4, 6, 12, 30]
    assert found.size_bytes[:7].tolist() == [size * MIB for size in sizes]
    assert found.kind[:7].tolist() == [HOLE, USED, HOLE, USED, HOLE, HOLE, USED]
    held = found.block[found.kind == USED]
    assert history.blocks["requested_bytes"].iloc[held].tolist() == [
        2 * MIB,
        4 * MIB,
        30 * MIB,
        100,
    ]


def test_order_by_size_and_by_what_is_stranded(comb):
    history, cut = last_cut(comb)
    alone = row_each(history)
    by_size = segment_picture(cut, alone, order="size").segment_bytes[:2]
    assert by_size.tolist() == [20 * MIB, 12 * MIB]
    # the segment of 20 MiB is in part in use, that of 12 wholly free
    found = segment_picture(cut, alone, order="unused")
    assert found.unused_bytes.tolist() == [14 * MIB, 12 * MIB, 0, 2 * MIB - 512]
    with pytest.raises(UsageError, match="colour"):
        segment_picture(cut, alone, order="colour")


def test_neighbours_too_small_to_see_are_one_cell(comb):
    history, cut = last_cut(comb)
    coarse = segment_picture(cut, row_each(history), columns=4)  # a pixel is 8 MiB
    # 3, 2 begin in the first 8 MiB, 5 does too; 4 and 6 in the second
    assert coarse.kind[:2].tolist() == [MERGED, MERGED]
    assert coarse.size_bytes[:2].tolist() == [10 * MIB, 10 * MIB]
    assert coarse.used_bytes[:2].tolist() == [2 * MIB, 4 * MIB]
    assert coarse.block[:2].tolist() == [3, 2]  # how many they stand for
    assert coarse.merged_below_bytes == 8 * MIB
    fine = segment_picture(cut, row_each(history), columns=1000)
    assert fine.merged_below_bytes == 0


def test_a_free_that_waits_is_told_apart():
    allocator = LoggedAllocator()
    address = allocator.alloc(MIB // 2)
    allocator.free(address)
    history, cut = last_cut(allocator, allocator_history(allocator.session()).last_state - 1)
    assert segment_picture(cut, row_each(history)).kind.tolist() == [WAITS, HOLE]


def test_one_segment_fills_the_row(comb):
    history, cut = last_cut(comb)
    del history
    inside = int(cut.segments["address"].iloc[0]) + 7 * MIB
    found = one_segment(cut, inside, columns=1000)
    assert found.groups["row_bytes"].tolist() == found.segment_bytes.tolist()
    assert found.size_bytes.sum() == found.segment_bytes[0]
    assert one_segment(cut, 5) is None


@pytest.mark.parametrize(
    "name",
    [
        "blockzero/cuda_snapshot.pickle",  # 926 segments, 4499 blocks
        "cs336-kk/memory_ctx256_fullstep.pickle.gz",
        "expandable/dump_snapshot_1gpu.pickle",
        "select-n/snapshot_llama_streams.pickle.gz",
    ],
)
@pytest.mark.parametrize("order", ["address", "unused"])
def test_every_byte_of_real_segments_is_in_a_cell(corpus, name, order):
    history = allocator_history(maiprof_nb.load(corpus / "memory" / name))
    for state in (0, history.last_state // 2, history.last_state):
        truth = state_of(history, state)
        cut = pieces_of(history, state)
        for most in (8000, 1500):
            found = segment_picture(cut, row_each(history), order=order, max_cells=most)
            assert len(found.kind) <= max(most, len(found.address))
            bounds = np.concatenate([[0], np.cumsum(found.cells)])
            sums = np.add.reduceat(found.size_bytes, bounds[:-1])
            assert (sums == found.segment_bytes).all()
            used = truth.loc[truth["state"].ne("inactive"), "size_bytes"].sum()
            assert found.used_bytes.sum() == used
            assert sorted(found.address) == sorted(truth["segment_address"].unique())
            group = np.repeat(np.arange(len(found.groups)), found.groups["segments"])
            same = np.diff(group) == 0
            if order == "address":
                assert (np.diff(found.address)[same] > 0).all()
            else:
                torn = found.unused_bytes * (found.unused_bytes < found.segment_bytes)
                assert (np.diff(torn)[same] <= 0).all()


def test_expandable_segments_grow_and_shrink_as_one_bar():
    """The model maps and unmaps steps of 20 MiB; its own list of blocks is the truth."""
    allocator = LoggedAllocator(AllocatorSettings(expandable=True))
    live = [allocator.alloc(size * MIB, name="part") for size in (7, 30, 12, 50)]
    for address in (live[3], live[1]):
        allocator.free(address)
    allocator.return_cached()
    history = allocator_history(allocator.session())
    alone = row_each(history)
    for state, truth in allocator.states.items():
        found = segment_picture(pieces_of(history, state), alone, columns=4000)
        assert found.groups["expandable"].all()
        assert found.size_bytes.tolist() == [size for _, size, _ in truth]
        assert (found.kind == USED).tolist() == [used for _, _, used in truth]
    last = segment_picture(pieces_of(history, history.last_state), alone)
    # 7 kept, 30 free, 12 kept, 50 free: of the steps only the last two are wholly free
    assert last.segment_bytes.tolist() == [60 * MIB]
