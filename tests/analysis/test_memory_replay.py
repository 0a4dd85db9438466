"""The allocator's model against every real log, and what another setting would have reserved."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import maiprof_nb
from maiprof_nb.allocator import MIB, AllocatorSettings, OutOfMemoryError
from maiprof_nb.analysis._allocator_history import allocator_history
from maiprof_nb.analysis._allocator_replay import (
    KEPT,
    PACKED,
    device_limit,
    replay,
    requested_in_states,
    reserved_in_states,
)
from maiprof_nb.analysis.active_memory import memory_log
from maiprof_nb.analysis.memory_replay import model_agreement, what_if
from maiprof_nb.errors import NotAnswerableError, UsageError
from tests.analysis.made_memory_logs import LoggedAllocator

SYNTHETIC = "mosaic/output.pickle"
# The log's own alloc, segment_alloc and segment_free events, counted in the pickles.
LOGS = {
    "blockzero/cuda_snapshot.pickle": (0, 0, 1),
    "cs336-charan/memory_snapshot.pickle.gz": (3221, 9, 0),
    "cs336-kk/memory_2.7b_forward.pickle.gz": (3020, 178, 742),
    "cs336-kk/memory_ctx128_forward.pickle": (2058, 289, 0),
    "cs336-kk/memory_ctx128_fullstep.pickle.gz": (6771, 783, 0),
    "cs336-kk/memory_ctx256_fullstep.pickle.gz": (6769, 791, 780),
    "cs336-kk/memory_ctx512_forward_compile.pickle.gz": (1301, 418, 1119),
    "cs336-kk/memory_ctx512_forward_mixed.pickle.gz": (2702, 638, 597),
    "cs336-kk/memory_ctx512_fullstep.pickle.gz": (6769, 589, 790),
    "cs336-kk/memory_small_forward.pickle.gz": (2998, 3, 0),
    "octree-nca/cuda_single_step.pickle": (2, 1, 0),
    "octree-nca/inference2_peso_oct.pickle": (782, 22, 17),
    "octree-nca/my_snapshot_1.pickle": (77, 14, 0),
    "octree-nca/my_snapshot_2.pickle": (294, 21, 0),
    "octree-nca/my_snapshot_3.pickle": (1023, 16, 11),
    "octree-nca/my_snapshot_4.pickle": (551, 0, 0),
    "octree-nca/my_snapshot_5.pickle": (1491, 48, 0),
    "octree-nca/traditional_single_step.pickle": (12, 4, 0),
    "select-n/snapshot_bert.pickle.gz": (1497, 13, 0),
    "select-n/snapshot_llama_streams.pickle.gz": (3058, 584, 579),
}
# Returns of cached memory in these served a request on a full device; the limit is inferred.
FULL_DEVICE = (
    "octree-nca/inference2_peso_oct.pickle",
    "octree-nca/my_snapshot_3.pickle",
    "select-n/snapshot_llama_streams.pickle.gz",
)


@pytest.mark.parametrize("name", LOGS)
def test_the_model_repeats_every_real_log(corpus, name):
    """Each request at its real address, each segment with its real size; no exceptions known."""
    session = maiprof_nb.load(corpus / "memory" / name)
    found = model_agreement(session)
    requests, segments, returned = LOGS[name]
    assert (found.requests, found.segments, found.returned) == LOGS[name]
    assert found.same_place == requests
    assert found.same_segments == segments
    assert found.model_returned == returned
    assert found.model_peak_reserved_bytes == found.peak_reserved_bytes
    assert found.exact
    # the same peak as the other replay of this log, which adds up events and knows no rules
    reserved = memory_log(session).reserved_bytes
    assert reserved is not None
    assert found.peak_reserved_bytes == reserved.max()


def test_no_log_is_left_out(corpus):
    """Snapshots without any event but a ``snapshot`` or a free have nothing to agree about."""
    for path in sorted((corpus / "memory").glob("*/*.pickle*")):
        name = str(path.relative_to(corpus / "memory"))
        if name not in {*LOGS, SYNTHETIC}:
            found = model_agreement(maiprof_nb.load(path))
            assert (found.requests, found.segments, found.returned) == (0, 0, 0), name
            assert found.exact


@pytest.mark.parametrize("name", FULL_DEVICE)
def test_the_model_returns_memory_where_the_real_allocator_did(corpus, name):
    """Told only how much the device gives, not when the log returned memory."""
    history = allocator_history(maiprof_nb.load(corpus / "memory" / name))
    limit = device_limit(history)
    assert limit is not None
    assert limit >= reserved_in_states(history).max()
    found = replay(history, retries=False, limit_bytes=limit)
    assert (found.allocs, len(found.taken), len(found.given)) == LOGS[name]
    assert found.same_place == found.allocs


def test_made_up_numbers_do_not_agree_and_are_refused(corpus):
    session = maiprof_nb.load(corpus / "memory" / SYNTHETIC)
    assert not model_agreement(session).exact
    with pytest.raises(NotAnswerableError, match="does not repeat"):
        what_if(session, expandable=True)


def _sawtooth() -> LoggedAllocator:
    """Each time 2 MiB more are asked for, and no free segment is large enough again."""
    allocator = LoggedAllocator()
    for size in range(20, 40, 2):
        allocator.free(allocator.alloc(size * MIB))
    return allocator


def test_expandable_segments_by_hand():
    """Ten segments of 20, 22 ... 38 MiB stay cached; one that grows has two steps of 20 MiB."""
    session = _sawtooth().session()
    found = what_if(session, expandable=True)
    assert found.peak_reserved_bytes == sum(range(20, 40, 2)) * MIB
    assert (found.least_peak_bytes, found.most_peak_bytes) == (40 * MIB, 40 * MIB)
    assert found.peak_requested_bytes == 38 * MIB
    assert (found.segments, found.least_segments, found.most_segments) == (10, 2, 2)
    assert found.saved_bytes == (250 * MIB, 250 * MIB)
    assert found.out_of_memory == "no"


def test_max_split_size_by_hand():
    """40 MiB lie free; with blocks from 32 MiB on unsplit, 25 MiB need a segment of 26."""
    allocator = LoggedAllocator()
    allocator.free(allocator.alloc(40 * MIB))
    allocator.alloc(25 * MIB)
    found = what_if(allocator.session(), max_split_size=32 * MIB)
    assert found.peak_reserved_bytes == 40 * MIB
    assert (found.least_peak_bytes, found.most_peak_bytes) == (66 * MIB, 66 * MIB)


def test_the_device_of_a_full_log_bounds_the_replay():
    """A device of 60 MiB gave back 40 MiB to serve 50: it can have given 89 MiB at most."""
    allocator = LoggedAllocator(limit_bytes=60 * MIB)
    allocator.free(allocator.alloc(40 * MIB))
    allocator.free(allocator.alloc(50 * MIB))
    found = what_if(allocator.session(), max_split_size=32 * MIB)
    assert found.device_bytes == 90 * MIB - 1
    assert found.most_peak_bytes == 50 * MIB


@pytest.mark.parametrize("expandable", [False, True])
def test_the_real_setting_is_no_other(corpus, expandable):
    """Over real logs: never less than was asked for, and the same again with the same setting."""
    for name in ("cs336-charan/memory_snapshot.pickle.gz", "octree-nca/my_snapshot_5.pickle"):
        session = maiprof_nb.load(corpus / "memory" / name)
        found = what_if(session, expandable=expandable)
        assert found.peak_requested_bytes <= found.least_peak_bytes <= found.most_peak_bytes
        if not expandable:
            assert found.least_peak_bytes <= found.peak_reserved_bytes == found.most_peak_bytes


def test_an_expandable_log_is_repeated_too():
    allocator = LoggedAllocator()
    allocator.settings = type(allocator.settings)(expandable=True)
    rng = np.random.default_rng(5)
    live = []
    for size in rng.integers(1, 30 * MIB, 200).tolist():
        live.append(allocator.alloc(size))
        if len(live) > 6:
            allocator.free(live.pop(int(rng.integers(len(live)))))
    found = model_agreement(allocator.session())
    assert found.requests == 200
    assert found.reserved_same
    assert found.model_peak_reserved_bytes == found.peak_reserved_bytes
    assert found.exact  # also the addresses: the first part mapped tells where the range begins


@pytest.mark.parametrize(
    ("options", "message"),
    [({}, "no other setting"), ({"max_split_size": 20 * MIB}, "max_split_size of 20971520")],
)
def test_refusals(options, message):
    with pytest.raises(UsageError, match=message):
        what_if(_sawtooth().session(), **options)


def test_a_snapshot_without_a_log_is_refused(corpus):
    path = corpus / "memory" / "select-n" / "snapshot_noevents.pickle"
    with pytest.raises(NotAnswerableError, match="no requests"):
        what_if(maiprof_nb.load(path), expandable=True)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 40 * MIB), st.booleans()), min_size=1, max_size=40),
    st.sampled_from([None, 300 * MIB]),
    st.booleans(),
    st.sampled_from([21 * MIB, 32 * MIB, 200 * MIB]),
)
def test_any_setting_reserves_what_is_in_use_at_least(requests, limit, expandable, split):
    """Whatever was asked for and freed, on a device of any size or of 300 MiB, in every state."""
    allocator, live = LoggedAllocator(limit_bytes=limit), []
    for size, free in requests:
        if free and live:
            allocator.free(live.pop(size % len(live)))
            continue
        try:
            live.append(allocator.alloc(size))
        except OutOfMemoryError:
            break
    session = allocator.session()
    if not any(row["action"] == "alloc" for row in allocator.events):
        return
    assert model_agreement(session).exact
    found = what_if(session, expandable=expandable, max_split_size=split)
    assert found.peak_requested_bytes <= found.least_peak_bytes <= found.most_peak_bytes
    history = allocator_history(session)
    tried = AllocatorSettings(max_split_bytes=split, expandable=expandable)
    for start in (KEPT, PACKED):
        made = replay(history, tried, start=start, retries=False)
        assert (made.reserved_bytes >= requested_in_states(history)).all()
