"""Busy, idle, exposed: hand-drawn streams, and the complaints of users of other tools."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from maiprof_nb import NotAnswerableError, TimeWindow
from maiprof_nb.analysis.device_activity import activities, breakdown, gaps, require_activity
from maiprof_nb.analysis.steps import figure_window
from tests import tiny_traces as tiny

US = 1000


def parts(session) -> dict[str, float]:
    """Microseconds of the only device's breakdown."""
    (row,) = breakdown(session).to_dict("records")
    named = {key: row[f"{key}_ns"] / US for key in ("window", "compute", "idle")}
    named |= {"comm": row["exposed_communication_ns"] / US, "copy": row["exposed_copy_ns"] / US}
    return named | {"busy": row["busy_share"], "overlap": row["overlap_share"]}


def drawn(*events, window=100):
    """Device work inside one step of so many microseconds from 1000 on."""
    return tiny.session(tiny.step(1, 1000, window), *events)


def test_one_stream():
    session = drawn(tiny.kernel(1010, 20), tiny.kernel(1050, 10), tiny.memcpy(1070, 5))
    assert parts(session) == pytest.approx(
        {"window": 100, "compute": 30, "comm": 0, "copy": 5, "idle": 65, "busy": 0.35}
        | {"overlap": np.nan},
        nan_ok=True,
    )


def test_compute_hides_communication_and_both_hide_copies():
    session = drawn(
        tiny.kernel(1000, 40),  # 0-40
        tiny.nccl(1030, 40),  # 30-70, of which 10 hidden
        tiny.memcpy(1035, 45, stream=30),  # 35-80, of which 35 hidden
        tiny.memcpy(1090, 5, stream=30),
    )
    found = parts(session)
    assert (found["compute"], found["comm"], found["copy"], found["idle"]) == (40, 30, 15, 15)
    assert found["overlap"] == 0.25


def test_parallel_kernels_count_once():
    session = drawn(*(tiny.kernel(1010, 30, stream=stream) for stream in range(5)))
    assert parts(session)["compute"] == 30


@pytest.mark.parametrize("seed", range(30))
def test_parts_sum_exactly_to_the_window(seed):
    """For any work, also beyond the window, and with times that are no whole microseconds."""
    random = np.random.default_rng(seed)
    makers = (tiny.kernel, tiny.nccl, tiny.memcpy)
    events = [
        makers[int(kind)](
            round(900 + at, 3), round(length, 3), stream=int(stream), device=int(device)
        )
        for kind, at, length, stream, device in zip(
            random.integers(0, 3, 60),
            random.uniform(0, 400, 60),
            random.exponential(6, 60),
            random.integers(0, 4, 60),
            random.integers(0, 2, 60),
            strict=True,
        )
    ]
    session = drawn(*events, window=200)
    found = breakdown(session)
    assert len(found) == 2
    names = ["compute_ns", "exposed_communication_ns", "exposed_copy_ns", "idle_ns"]
    assert (found[names].sum(axis=1) == found["window_ns"]).all()
    assert (found[names] >= 0).all(axis=None)
    window = figure_window(session).window
    for one, row in zip(activities(session), found.itertuples(), strict=True):
        nanoseconds = np.zeros(window.dur_ns, dtype=bool)
        for start, end in zip(one.busy.start_ns, one.busy.end_ns, strict=True):
            nanoseconds[max(start - window.start_ns, 0) : max(end - window.start_ns, 0)] = True
        assert row.idle_ns == (~nanoseconds).sum()


def test_gaps_are_holes_of_the_whole_device():
    """nsys-ai#600, #619: per-stream holes summed up gave more idle time than there was time."""
    session = drawn(
        tiny.kernel(1000, 50, stream=7), tiny.kernel(1040, 40, stream=8), tiny.kernel(1090, 10)
    )
    found = gaps(session)
    assert found["dur_ns"].tolist() == [10 * US]
    assert found["ts_ns"].tolist() == [80 * US]


def test_nsys_ai_600_a_waiting_communication_stream_beside_busy_compute_is_not_idle():
    """Compute fills the step; the communication stream works 2 % of it: no idle time at all."""
    session = drawn(*(tiny.kernel(1000 + 10 * i, 10) for i in range(10)), tiny.nccl(1049, 2))
    found = parts(session)
    assert found["idle"] == 0
    assert found["busy"] == 1
    assert found["comm"] == 0
    assert len(gaps(session)) == 0


def test_nsys_ai_pr_241_idle_never_exceeds_the_recording():
    """59 s of idle time were reported that did not exist: many streams, little work."""
    session = drawn(*(tiny.kernel(1000 + i, 1, stream=i) for i in range(60)))
    assert parts(session)["idle"] == 40
    assert gaps(session)["dur_ns"].sum() == 40 * US


def test_nsys_ai_142_streams_of_two_devices_are_not_one():
    """Streams were keyed without their device: 258 % utilisation."""
    session = drawn(*(tiny.kernel(1000, 90, device=device, stream=7) for device in range(3)))
    found = breakdown(session)
    assert found["busy_share"].tolist() == [0.9, 0.9, 0.9]
    assert found["device"].tolist() == [0, 1, 2]


def test_hta_109_overlap_is_known_for_ncclDevKernel():  # noqa: N802 - as NCCL spells it
    session = drawn(tiny.kernel(1000, 50), tiny.nccl(1040, 20))
    assert parts(session)["overlap"] == 0.5


def test_hta_56_a_rank_without_communication_beside_one_with():
    session = tiny.ranks(
        [tiny.step(1, 1000, 100), tiny.kernel(1000, 50), tiny.nccl(1050, 50)],
        [tiny.step(1, 1000, 100), tiny.kernel(1000, 20)],
    )
    found = breakdown(session)
    assert found["rank"].tolist() == [0, 1]
    assert found["overlap_share"].iloc[0] == 0
    assert np.isnan(found["overlap_share"].iloc[1])
    assert found["exposed_communication_ns"].tolist() == [50 * US, 0]
    assert found["idle_ns"].tolist() == [0, 80 * US]


def test_hta_162_synchronisation_events_are_not_work():
    """HTA counted `cuda_sync` rows as compute."""
    sync = tiny.complete("Stream Synchronize", "cuda_sync", 1000, 90, pid=0, tid=7)
    sync["args"] = {"device": 0, "stream": 7}
    session = drawn(tiny.kernel(1000, 10), sync)
    assert parts(session)["compute"] == 10


def test_hta_149_synchronisation_events_do_not_shorten_idle_time():
    sync = tiny.complete("Context Sync", "cuda_sync", 1020, 60, pid=0, tid=7)
    overhead = tiny.complete("Buffer Flush", "overhead", 1030, 20, pid=-1, tid=0)
    mirrored = tiny.kernel(1000, 100, name="## forward ##", category="gpu_user_annotation")
    span = tiny.complete("PyTorch Profiler (0)", "Trace", 900, 500, pid="Spans")
    session = drawn(tiny.kernel(1000, 20), tiny.kernel(1080, 20), sync, overhead, mirrored, span)
    assert gaps(session)["dur_ns"].tolist() == [60 * US]
    assert parts(session)["idle"] == 60


def test_tracelens_511_kernels_without_a_launching_operator_count():
    """TraceLens#511, #293: they were lost from its tables."""
    session = drawn(tiny.kernel(1000, 30), tiny.kernel(1030, 30, correlation=4))
    assert parts(session)["compute"] == 60


def test_xprof_564_half_idle_without_a_visible_blank():
    """As in xprof#564 and tensorboard#6198: "50 % idle" with no blank in the trace.

    Here holes too short to be gaps are idle time all the same; no gap of 1 us is claimed.
    """
    work = [tiny.kernel(1000 + i, 0.5) for i in range(100)]
    session = drawn(*work)
    assert parts(session)["idle"] == 50
    assert len(gaps(session)) == 0


def test_a_gap_of_exactly_one_microsecond_counts():
    session = drawn(tiny.kernel(1000, 49), tiny.kernel(1050, 30), tiny.kernel(1080.999, 19.001))
    assert gaps(session)["dur_ns"].tolist() == [1000]


def test_gaps_reach_to_the_edges_of_the_window_longest_first():
    session = drawn(tiny.kernel(1010, 20), tiny.kernel(1040, 30))
    found = gaps(session)
    assert found["dur_ns"].tolist() == [30 * US, 10 * US, 10 * US]
    assert found["ts_ns"].iloc[0] == 70 * US


def test_the_selected_window_is_the_window():
    session = drawn(tiny.kernel(1010, 20), tiny.kernel(1050, 20))
    part = session.select(window=TimeWindow(20 * US, 60 * US))
    assert parts(part)["window"] == 40
    assert parts(part)["compute"] == 20
    assert gaps(part)["dur_ns"].tolist() == [20 * US]


def test_work_without_length_is_no_activity():
    session = drawn(tiny.kernel(1050, 0))
    assert parts(session)["idle"] == 100
    assert gaps(session)["dur_ns"].tolist() == [100 * US]


def test_devices_without_number():
    session = drawn(tiny.complete("k", "kernel", 1000, 10, pid="GPU", tid="x"))
    (one,) = activities(session)
    assert one.device is None
    assert one.label == "device"
    assert breakdown(session)["device"].isna().all()
    assert gaps(session)["device"].isna().all()


def test_labels():
    session = tiny.ranks([tiny.kernel(1, 1, device=3)], [tiny.kernel(1, 1, device=4)])
    assert [one.label for one in activities(session)] == ["rank 0, GPU 3", "rank 1, GPU 4"]


def test_launches_without_any_work_are_not_an_idle_gpu():
    """zoology-a100-no-kernels: GPU activity was not recorded."""
    session = drawn(tiny.launch(1, 1010))
    for question in (breakdown, gaps, require_activity):
        with pytest.raises(NotAnswerableError, match="launched device work, but the trace holds"):
            question(session)


def test_a_host_only_recording_has_no_device_figures():
    with pytest.raises(NotAnswerableError, match="holds no device work") as error:
        breakdown(drawn(tiny.operator("op", 1000, 5)))
    assert "ProfilerActivity.CUDA" in error.value.remedy


def test_epoch_sized_times_lose_nothing():
    """TraceLens in float64: idle time 1.2 % off with epoch microseconds."""
    start = 1_712_195_524_000_000
    events = ",".join(
        f'{{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":{start}.{i * 3:03d},'
        f'"dur":0.001,"args":{{"device":0,"stream":7}}}}'
        for i in range(300)
    )
    session = tiny.session_of(f'{{"traceEvents":[{events}]}}'.encode())
    (row,) = breakdown(session).to_dict("records")
    assert row["compute_ns"] == 300
    assert row["window_ns"] == 299 * 3 + 1
    assert row["idle_ns"] == 598


def test_two_ranks_types():
    found = gaps(tiny.ranks([tiny.kernel(1, 1)], [tiny.kernel(9, 1)]))
    assert isinstance(found, pd.DataFrame)
    assert str(found["rank"].dtype) == "Int64"
    assert found["ts_ns"].dtype == np.int64
