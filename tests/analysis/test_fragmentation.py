"""Idle reserved memory and what keeps it, by hand and as sums over real logs."""

from __future__ import annotations

import numpy as np
import pytest

import maiprof_nb
from maiprof_nb.allocator import MIB
from maiprof_nb.analysis.active_memory import memory_curve, memory_log
from maiprof_nb.analysis.allocator_state import allocator_history, pieces_of, state_of
from maiprof_nb.analysis.fragmentation import fragmentation, fragmentation_of, holes, room
from maiprof_nb.errors import UsageError
from maiprof_nb.timebase import TimeWindow
from tests.analysis.made_memory_logs import LoggedAllocator


@pytest.fixture
def comb() -> LoggedAllocator:
    """One segment of 20 MiB: 3 free, 2 keep, 5 free, 4 other, 6 free; one of 12 wholly free."""
    allocator = LoggedAllocator()
    first = allocator.alloc(3 * MIB, name="gone")
    allocator.alloc(2 * MIB, name="keep")
    middle = allocator.alloc(5 * MIB, name="gone")
    allocator.alloc(4 * MIB, name="other")
    whole = allocator.alloc(12 * MIB, name="gone")
    for address in (first, middle, whole):
        allocator.free(address)
    return allocator


def test_by_hand(comb):
    session = comb.session()
    last = fragmentation(session).iloc[-1]
    assert last["reserved_bytes"] == 32 * MIB
    assert last["allocated_bytes"] == 6 * MIB
    assert last["unused_bytes"] == 26 * MIB
    assert last["largest_free_bytes"] == last["fits_bytes"] == 12 * MIB
    assert last["fragmentation"] == pytest.approx(1 - 12 / 26)
    assert last["fits_after_release_bytes"] == 12 * MIB
    # a device of 37 MiB has 5 left; with the 12 that go back, 17: a segment of 16 MiB
    last = fragmentation(session, device_bytes=37 * MIB).iloc[-1]
    assert last["fits_after_release_bytes"] == 16 * MIB


def test_who_holds_the_holes(comb):
    session = comb.session()
    found = holes(session, int(memory_log(session).span.end_ns)).set_index("label")
    label = {name.split(" ")[0]: name for name in found.index}
    # keep: all of 3 MiB before it, which nobody else touches, and half of the 5 behind it
    assert found.loc[label["keep"], "held_bytes"] == 5.5 * MIB
    assert found.loc[label["other"], "held_bytes"] == 8.5 * MIB
    assert found["blocks"].tolist() == [1, 1]
    assert found.loc[label["other"], "block_bytes"] == 4 * MIB
    assert len(found) == 2


@pytest.mark.parametrize(
    "name", ["cs336-kk/memory_ctx256_fullstep.pickle.gz", "octree-nca/my_snapshot_3.pickle"]
)
def test_sums_on_real_logs(corpus, name):
    """Against the other replay of the log, which adds up events and knows no addresses."""
    session = maiprof_nb.load(corpus / "memory" / name)
    found = fragmentation(session, points=40)
    curve = memory_curve(session)
    assert found["reserved_bytes"].max() == curve["reserved_bytes"].max()
    assert found["reserved_bytes"].iloc[-1] == curve["reserved_bytes"].iloc[-1]
    assert found["allocated_bytes"].iloc[-1] == curve["allocated_bytes"].iloc[-1]
    assert len(found) <= 40
    assert found["fragmentation"].dropna().between(0, 1).all()
    assert (found["largest_free_bytes"] <= found["unused_bytes"]).all()
    assert (found["fits_bytes"] <= found["fits_after_release_bytes"]).all()

    history = allocator_history(session)
    end = state_of(history, history.last_state)
    free = end[end["state"].eq("inactive") & end["size_bytes"].ne(end["segment_bytes"])]
    held = holes(session, int(history.ts_ns[-1]))
    assert abs(int(held["held_bytes"].sum()) - int(free["size_bytes"].sum())) <= len(held)
    assert (np.diff(held["held_bytes"]) <= 0).all()


def test_every_moment_of_a_short_log(comb):
    found = fragmentation(comb.session())
    assert found["state"].tolist() == list(range(len(comb.events) + 1))
    assert found.loc[0, "reserved_bytes"] == 0
    assert np.isnan(found.loc[0, "fragmentation"])
    with pytest.raises(UsageError, match="too few"):
        fragmentation(comb.session(), points=4)


def test_a_window_begins_with_the_state_in_force(comb):
    """The log's n-th event happens at n us, so the state at 3.5 us is after four events."""
    found = fragmentation(comb.session(), window=TimeWindow(3_500, 6_000))
    assert found["state"].tolist() == [4, 5, 6, 7]
    whole = fragmentation(comb.session()).set_index("state")
    assert found.set_index("state").equals(whole.loc[4:7])


def test_the_room_of_a_moment_by_hand(comb):
    history = allocator_history(comb.session())
    found = room(pieces_of(history, history.last_state))
    assert (found.segments, found.free_segments, found.holes) == (2, 1, 3)
    assert found.unused_bytes == 26 * MIB
    assert found.returnable_bytes == 12 * MIB  # the wholly free segment
    assert found.stranded_bytes == (3 + 5 + 6) * MIB
    assert found.fits_bytes == found.fits_after_release_bytes == 12 * MIB
    assert found.fits_defragmented_bytes == 26 * MIB
    assert found.fragmentation == pytest.approx(1 - 12 / 26)
    # a device of 37 MiB has 5 left: with the 12 that go back a segment of 16, with all 26 of 30
    known = room(pieces_of(history, history.last_state), device_bytes=37 * MIB)
    assert known.fits_after_release_bytes == 16 * MIB
    assert known.fits_defragmented_bytes == 30 * MIB


@pytest.mark.parametrize(
    "name", ["octree-nca/my_snapshot_5.pickle", "select-n/snapshot_bert.pickle.gz"]
)
def test_the_room_of_a_moment_is_what_the_curve_says(corpus, name):
    """Two ways to the same figures: `fragmentation` asks for free blocks, `room` for all."""
    history = allocator_history(maiprof_nb.load(corpus / "memory" / name))
    for row in fragmentation_of(history, points=25).itertuples():
        found = room(pieces_of(history, row.state))
        for column in ("reserved", "allocated", "unused", "largest_free", "fits",
                       "fits_after_release"):  # fmt: skip
            assert getattr(found, f"{column}_bytes") == getattr(row, f"{column}_bytes"), column
        assert found.fragmentation == pytest.approx(row.fragmentation, nan_ok=True)
        assert found.returnable_bytes + found.stranded_bytes == row.unused_bytes
        assert row.fits_after_release_bytes <= found.fits_defragmented_bytes
