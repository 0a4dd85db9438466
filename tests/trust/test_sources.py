"""Snapshots, metrics, ranks and clocks of several recordings; counted by hand."""

from __future__ import annotations

import pickle

import numpy as np

from maiprof_nb import Clock, Note, Recording, Session
from maiprof_nb.loading import snapshot
from maiprof_nb.tables import SCHEMAS
from maiprof_nb.trust import trust
from tests import tiny_traces as tiny
from tests.trust.asking import failing, outcome

SECOND = 1_000_000_000


def snapshot_session(events, segments=()):
    content = {"segments": list(segments), "device_traces": [list(events)]}
    return Session([snapshot.read(pickle.dumps(content), "memory.pickle")])


def allocator(action, address, size, at):
    return {
        "action": action, "addr": address, "size": size, "stream": 0, "time_us": at, "frames": [],
    }  # fmt: skip


def test_an_empty_snapshot():
    """Megatron-Bridge#3487, VeOmni#350: saved empty, discovered only later."""
    session = snapshot_session([])
    assert outcome(session, "memory-empty")["outcome"] == "failed"
    answer = trust(session, "memory-peak")
    assert answer.state == "not answerable"
    assert "_record_memory_history" in answer.reasons[0]


def test_a_whole_log_is_healthy():
    assert not failing(
        snapshot_session(
            [
                allocator("segment_alloc", 4096, 2**21, 1),
                allocator("alloc", 4096, 512, 2),
                allocator("free_requested", 4096, 512, 3),
                allocator("free_completed", 4096, 512, 4),
            ]
        )
    )


def test_a_log_that_begins_late():
    """The issue is pytorch PR#179276: the ring overflowed and the picture starts in the middle."""
    session = snapshot_session([allocator("free_completed", 4096 * i, 512, i) for i in (1, 2, 3)])
    found = outcome(session, "memory-log-begins-late")
    assert (found["outcome"], found["count"]) == ("failed", 3)
    assert "ring" not in found["reason"]
    assert trust(session, "memory-curve").state == "reduced"


def test_a_ring_that_is_full_holds_a_round_number_of_entries():
    session = snapshot_session(
        [allocator("free_completed", 4096 * i, 512, i) for i in range(1, 10_001)]
    )
    assert "the ring was full" in outcome(session, "memory-log-begins-late")["reason"]


def test_the_final_state_alone():
    block = {"address": 4096, "size": 512, "requested_size": 512, "state": "active_allocated"}
    segment = {
        "device": 0, "address": 4096, "total_size": 2**21, "allocated_size": 512,
        "active_size": 512, "stream": 0, "segment_type": "small",
        "blocks": [block, block | {"address": 4608, "size": 2**21 - 512, "state": "inactive"}],
    }  # fmt: skip
    session = snapshot_session([], [segment])
    assert outcome(session, "memory-log-missing")["outcome"] == "failed"
    assert trust(session, "memory-curve").state == "not answerable"


def sampled(seconds, values, counter="utilization.gpu", notes=(), **clock):
    times = np.array(seconds, dtype=np.float64) * SECOND
    texts = ["0"] * len(times)
    counters = SCHEMAS["counters"].frame(
        {
            "event": np.arange(len(times)),
            "ts_ns": times.astype(np.int64),
            "device": texts,
            "counter": [counter] * len(times),
            "unit": ["%"] * len(times),
            "value": np.array(values, dtype=np.float64),
        }
    )
    at = Clock(clock.pop("epoch_ns", None), "of the test", **clock)
    return Recording("gpu.csv", "metrics", "test", {"counters": counters}, at, notes=notes)


def test_samples_that_pause():
    """Every second, once nothing for 9: 8 of 18 s are unknown."""
    session = Session([sampled([*range(10), *range(18, 28)], range(20))])
    found = outcome(session, "metric-gaps")
    assert (found["outcome"], found["count"]) == ("failed", 1)
    assert round(found["share"], 3) == round(8 / 27, 3)
    assert "at most for 9.00 s" in found["reason"]


def test_regular_samples_are_healthy():
    assert not failing(Session([sampled(range(20), range(20))]))


def test_pauses_below_five_intervals_are_healthy():
    """As the loop of 1 s with pauses of 2 to 5 s in smi-loop-4090."""
    assert not failing(Session([sampled([*range(10), *range(14, 24)], range(20))]))


def test_utilisation_that_is_not_available():
    """DCGM#80, distributed#8739, nvidia_gpu_exporter#203: none on MIG instances."""
    note = Note("missing-values", "20 samples have no value: utilization.gpu (20).", 20)
    session = Session([sampled(range(20), [70] * 20, counter="power.draw", notes=(note,))])
    found = outcome(session, "utilisation-unmeasured")
    assert found["outcome"] == "failed"
    assert "no idle GPU" in found["reason"]


def busy_trace():
    events = [tiny.launch(1, 1000), tiny.kernel(1005, 20_000_000, correlation=1)]
    return tiny.recording(*events, baseTimeNanoseconds=1_700_000_000 * SECOND)


def test_zeros_while_the_trace_shows_work_are_not_idle():
    """The same, drawn as zeros."""
    epoch = {"epoch_ns": 1_700_000_000 * SECOND, "uncertainty_ns": 0}
    session = Session([busy_trace(), sampled(range(20), [0] * 20, **epoch)])
    assert outcome(session, "utilisation-unmeasured")["outcome"] == "failed"
    assert trust(session, "metrics").state == "reduced"
    alone = Session([sampled(range(20), [0] * 20, **epoch)])
    assert not failing(alone)  # zeros of a GPU that may well have been idle


def test_a_source_on_no_common_axis():
    session = Session([busy_trace(), sampled(range(20), range(1, 21), ordered_only=True)])
    found = outcome(session, "off-axis")
    assert (found["outcome"], found["count"]) == ("failed", 1)
    assert trust(session, "alignment").state == "reduced"


def test_a_clock_less_sure_than_the_window_is_long():
    """20 s of work, a clock sure to half an hour; then to a second."""
    for sure_s, wanted in ((1800, "failed"), (1, "passed")):
        clock = {"epoch_ns": 1_700_000_000 * SECOND, "uncertainty_ns": sure_s * SECOND}
        session = Session([busy_trace(), sampled(range(20), range(1, 21), **clock)])
        assert outcome(session, "clock-uncertain")["outcome"] == wanted


def test_local_time_that_only_one_zone_can_explain_is_sure():
    clock = {"epoch_ns": 1_700_000_000 * SECOND, "uncertainty_ns": 50_000 * SECOND}
    session = Session([busy_trace(), sampled(range(20), range(1, 21), **clock)])
    assert outcome(session, "clock-uncertain")["outcome"] == "passed"


def collectives(late_us: float, count: int = 8):
    """Each rank arrives when it likes; all ends are the same but for the clock."""
    events = []
    for i in range(count):
        end = 1000 + 1000 * i + 300
        events.append(tiny.launch(i, 1000 + 1000 * i + late_us - 10))
        events.append(tiny.nccl(1000 + 1000 * i + late_us, end - 1000 - 1000 * i, correlation=i))
    return events


def test_ranks_whose_clocks_disagree():
    """pytorch#128292, PR#161145, attention-gym#487, tokenspeed#662: hundreds of us."""
    session = tiny.ranks(collectives(0), collectives(0), collectives(0), collectives(450))
    found = outcome(session, "rank-clocks")
    assert (found["outcome"], found["count"]) == ("failed", 1)
    assert "450 µs (rank 3)" in found["reason"]
    assert trust(session, "ranks").state == "reduced"


def test_ranks_on_one_clock_are_healthy():
    session = tiny.ranks(collectives(0), collectives(3), collectives(0))
    assert outcome(session, "rank-clocks")["outcome"] == "passed"


def test_missing_ranks():
    trace = [tiny.launch(1, 1000), tiny.kernel(1005, 5, correlation=1)]
    of_eight = {"distributedInfo": {"rank": 0, "world_size": 8}}
    found = outcome(tiny.session(*trace, **of_eight), "missing-ranks")
    assert (found["outcome"], found["count"]) == ("failed", 7)
    alone = {"distributedInfo": {"rank": 0, "world_size": 1}}
    assert outcome(tiny.session(*trace, **alone), "missing-ranks")["outcome"] == "passed"


def test_a_fault_of_one_rank_only_reduces():
    work = [tiny.launch(1, 1000), tiny.kernel(1005, 5, correlation=1)]
    session = tiny.ranks(work, [tiny.launch(1, 1000)])
    answer = trust(session, "gpu-utilisation")
    assert answer.state == "reduced"
    assert answer.reasons[0].startswith("Rank 1: The host launched device work 1 times")
    assert trust(session.select(ranks=[0]), "gpu-utilisation").state == "ok"
    assert trust(session.select(ranks=[1]), "gpu-utilisation").state == "not answerable"
