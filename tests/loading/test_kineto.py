"""Single rules of the Kineto reader, on traces of a few events."""

from __future__ import annotations

import pandas as pd
import pytest

import maiprof_nb
from maiprof_nb.loading import kineto
from tests import tiny_traces as tiny

BASE_NS = 1_759_017_600_000_000_000  # a base as Kineto writes it, in September 2025
EPOCH_US = 1_712_195_524_123_456  # April 2024


def read(events: str, *, source: str = "trace.json", meta: str = ""):
    return kineto.read(f'{{{meta}"traceEvents": [{events}]}}'.encode(), source)


def operator_at(ts: str, dur: str = "1") -> str:
    what = '"ph": "X", "cat": "cpu_op", "name": "op", "pid": 1, "tid": 1'
    return f'{{{what}, "ts": {ts}, "dur": {dur}}}'


def times(*written: str, meta: str = "") -> tuple[list[int], int | None]:
    """Session-free times of operators at `written`, and the wall clock of their zero."""
    found = read(",".join(map(operator_at, written)), meta=meta)
    return found.table("operators")["ts_ns"].tolist(), found.clock.epoch_ns


def test_absolute_microseconds_with_three_decimals_are_exact():
    """As in hta-ns-resolution: 1.7e15 us leave a double only 0.25 us."""
    written = [f"{EPOCH_US}.{decimals}" for decimals in ("001", "002", "457", "999")]
    relative, epoch = times(*written)
    assert relative == [0, 1, 456, 998]
    assert epoch == EPOCH_US * 1000 + 1


def test_every_thousandth_of_a_microsecond_is_told_apart():
    relative, _ = times(*(f"{EPOCH_US}.{decimals:03d}" for decimals in range(1000)))
    assert relative == list(range(1000))


@pytest.mark.parametrize("near_us", [2**42, 2**43 - 2, 2**43 - 1, 2**43, 2**43 + 1, 2**44])
def test_exact_on_both_sides_of_what_a_double_holds(near_us):
    written = [f"{near_us}.{decimals:03d}" for decimals in (0, 1, 499, 501, 999)]
    relative, epoch = times(*written, meta=f'"baseTimeNanoseconds": {BASE_NS}, ')
    assert relative == [0, 1, 499, 501, 999]
    assert epoch == BASE_NS + near_us * 1000


def test_time_as_a_string():
    """The Ascend layout writes `"ts": "1757001234567890.123"` (Ascend/pytorch#133)."""
    written = [f'"{EPOCH_US}.{decimals}"' for decimals in ("250", "251")]
    assert times(*written) == ([0, 1], EPOCH_US * 1000 + 250)
    assert times('"10.5"', '"11"')[0] == [0, 500]


def test_mixed_integers_strings_and_decimals():
    assert times("10", '"10.5"', "11.25")[0] == [0, 500, 1250]


def test_times_before_zero_stay_exact():
    relative, _ = times("-1.5", "-0.001", "0", "0.001")
    assert relative == [0, 1499, 1500, 1501]


def test_time_zero_is_the_first_complete_event():
    """Marks may lie before it; they keep their distance."""
    mark = '{"ph": "i", "cat": "x", "name": "m", "pid": 1, "tid": 1, "ts": 5}'
    found = read(f"{mark}, {operator_at('7')}")
    assert found.table("operators")["ts_ns"].tolist() == [0]
    assert found.table("other_events")["ts_ns"].tolist() == [-2000]


def test_relative_clock_without_base_is_no_wall_clock():
    found = read(operator_at("1234.5"))
    assert found.clock.epoch_ns is None
    assert "no wall-clock" in found.clock.origin


def test_base_time_does_not_add_to_epoch_times():
    _, epoch = times(str(EPOCH_US), meta=f'"baseTimeNanoseconds": {BASE_NS}, ')
    assert epoch == EPOCH_US * 1000


@pytest.mark.parametrize(
    ("dur", "code"),
    [
        ("-1", "negative-duration"),
        ("-1712195524123456", "negative-duration"),
        ("-9223372036854775.808", "duration-missing"),
        ("null", "duration-missing"),
        ("1e300", "duration-missing"),
        ("99999999999999999999999999", "duration-missing"),
        ('"soon"', "duration-missing"),
    ],
)
def test_impossible_durations_count_as_zero_and_are_noted(dur, code):
    found = read(f"{operator_at('1')}, {operator_at('2', dur)}")
    assert found.table("operators")["dur_ns"].tolist() == [1000, 0]
    (note,) = [note for note in found.notes if note.code == code]
    assert note.count == 1
    assert "event 1" in note.text


def test_missing_duration_is_noted():
    found = read('{"ph": "X", "cat": "cpu_op", "name": "op", "ts": 1}')
    assert "duration-missing" in {note.code for note in found.notes}
    assert found.table("operators")["dur_ns"].tolist() == [0]


def test_decimal_durations_are_exact():
    found = read(",".join(operator_at("1", dur) for dur in ("0.01", "1.001", "123456.789", "0")))
    assert found.table("operators")["dur_ns"].tolist() == [10, 1001, 123456789, 0]


@pytest.mark.parametrize("ts", ["null", '"never"', "1e300"])
def test_an_event_without_a_time_is_kept_off_the_axis(ts):
    found = read(f"{operator_at('3')}, {operator_at(ts)}")
    assert len(found.table("operators")) == 1
    assert found.table("other_events")["ts_ns"].isna().tolist() == [True]
    assert [note.count for note in found.notes if note.code == "time-missing"] == [1]


@pytest.mark.parametrize(
    ("meta", "source", "rank", "codes"),
    [
        ('"distributedInfo": {"rank": 3, "world_size": 8}, ', "rank7.json", 3, []),
        ("", "x/rank7.json", 7, ["rank-from-name"]),
        ("", "rank-12.Apr_03.pt.trace.json.gz", 12, ["rank-from-name"]),
        ("", "worker5_step_12.1694.pt.trace.json.gz", 5, ["rank-from-name"]),
        ("", "1782799835.6885648-TP-0-DECODE.trace.json.gz", 0, ["rank-from-name"]),
        ("", "num_workers_4.json", None, ["rank-unknown"]),
        ("", "rank3/trace.json", None, ["rank-unknown"]),
        ('"distributedInfo": {"backend": "nccl"}, ', "trace.json", None, ["rank-unknown"]),
        ('"distributedInfo": null, ', "trace.json", None, ["rank-unknown"]),
    ],
)
def test_rank(meta, source, rank, codes, tmp_path):
    path = tmp_path / source
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'{{{meta}"traceEvents": [{operator_at("1")}]}}')
    (found,) = maiprof_nb.load(path).recordings
    assert found.rank == rank
    assert [note.code for note in found.notes] == codes


def test_names_of_categories_of_2021():
    """Up to torch 1.11; a stream is then written as text in the thread's place."""
    found = tiny.recording(
        tiny.complete("aten::mm", "Operator", 0, 9, args={"external id": 5}),
        tiny.complete("ProfilerStep#3", "Operator", 0, 20),
        tiny.complete("Optimizer.step#SGD.step", "Operator", 10, 5),
        tiny.complete("cudaLaunchKernel", "Runtime", 1, 2, args={"correlation": 8}),
        tiny.complete(
            "sgemm", "Kernel", 4, 3, pid=0, tid="stream 7", args={"correlation": 8, "device": 0}
        ),
        tiny.complete("Memcpy HtoD", "Memcpy", 8, 1, pid=0, tid="stream 7", args={"bytes": 64}),
        tiny.complete("Memset", "Memset", 9, 1, pid=0, tid="stream 7"),
    )
    assert found.table("operators")["external_id"].tolist() == [5]
    assert found.table("annotations")["name"].tolist() == [
        "ProfilerStep#3",
        "Optimizer.step#SGD.step",
    ]
    assert found.table("steps")["step"].tolist() == [3]
    kernels = found.table("kernels")
    assert kernels["kind"].tolist() == ["compute", "memcpy", "memset"]
    assert kernels["stream"].tolist() == [7, 7, 7]
    assert kernels["device"].tolist() == [0, 0, 0]
    assert kernels["size_bytes"].tolist() == [pd.NA, 64, pd.NA]
    assert found.table("launches")["correlation"].tolist() == [8]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "communication"),
        ("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "communication"),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", "communication"),
        ("void rcclGenericKernel<1, false>(ncclDevKernelArgsStorage<4096ul>)", "communication"),
        ("void vllm::cross_device_reduce_2stage<__half, 8>(vllm::RankData*)", "communication"),
        ("nvshmem_alltoall_kernel", "communication"),
        ("hipMemsetAsync_like_kernel", "compute"),
        ("hipLaunchKernel", "compute"),
        ("hipblasLtMatmul_Cijk_Ailk_Bljk_HHS_BH", "compute"),
        ("Cijk_Alik_Bljk_SB_MT128x64x16", "compute"),
        ("void at::native::reduce_kernel<512, 1>(at::native::ReduceOp<float>)", "compute"),
    ],
)
def test_kind_of_a_kernel_by_its_name(name, kind):
    """HTA#360, #361, #109: `ncclDevKernel_*` is communication; a name in "hip" alone is not."""
    found = tiny.recording(tiny.kernel(0, 1, name=name))
    assert found.table("kernels")["kind"].tolist() == [kind]


def test_collective_arguments_make_a_kernel_communication():
    event = tiny.kernel(0, 1, name="opaque")
    event["args"]["Collective name"] = "all_to_allv"
    found = tiny.recording(event, tiny.kernel(1, 1, name="opaque"))
    assert found.table("kernels")["kind"].tolist() == ["communication", "compute"]


def test_a_copy_of_a_collective_library_is_a_copy():
    found = tiny.recording(tiny.memcpy(0, 1) | {"name": "ncclMemcpy DtoD"})
    assert found.table("kernels")["kind"].tolist() == ["memcpy"]


def test_counter_events():
    """One event with several values is several samples (kineto-gpu-metrics-counters)."""
    event = {"ph": "C", "name": "GPU 0 Utilization", "pid": 0, "ts": 5}
    event["args"] = {"GPU Utilization": 0.5, "Est. SM Efficiency": 0.25, "unit": "share"}
    found = tiny.recording(tiny.operator("op", 4, 1), event)
    counters = found.table("counters")
    assert counters["counter"].tolist() == ["GPU Utilization", "Est. SM Efficiency"]
    assert counters["value"].tolist() == [0.5, 0.25]
    assert counters["ts_ns"].tolist() == [1000, 1000]
    assert counters["event"].tolist() == [1, 1]
    assert found.events["C/"] == 1


def test_begin_and_end_events_are_kept_as_they_are():
    pair = [
        {"ph": phase, "name": "x", "cat": "c", "pid": 1, "tid": 2, "ts": ts}
        for phase, ts in (("B", 1), ("E", 4))
    ]
    other = tiny.recording(*pair).table("other_events")
    assert other["phase"].tolist() == ["B", "E"]
    assert other["ts_ns"].tolist() == [0, 3000]
    assert other["dur_ns"].isna().all()


def test_names_of_threads_and_processes():
    found = tiny.recording(
        {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "python"}},
        {"ph": "M", "name": "thread_sort_index", "pid": 0, "tid": 7, "args": {"sort_index": 20}},
        {"ph": "M", "name": "empty", "pid": "Spans", "tid": 0},
    )
    labels = found.table("track_labels")
    assert labels["label"].tolist() == ["process_name", "thread_sort_index", "empty"]
    assert labels["text"].tolist()[:2] == ["python", "20"]
    assert labels["text"].isna().tolist() == [False, False, True]
    assert labels["pid"].tolist() == ["0", "0", "Spans"]


def test_integers_and_texts_of_one_thread_are_the_same_thread():
    """2021 files write the thread of events as text, that of their arrows as a number."""
    found = tiny.recording(
        tiny.operator("op", 0, 1) | {"tid": "4093687616"},
        {"ph": "s", "cat": "async", "id": 3, "pid": 1, "tid": 4093687616, "ts": 0},
    )
    assert found.table("operators")["tid"].tolist() == found.table("flows")["tid"].tolist()


def test_flows_have_ends_and_ids():
    found = tiny.recording(
        *(
            {"ph": phase, "cat": "ac2g", "id": number, "pid": 0, "tid": 0, "ts": 1}
            for phase, number in (("s", 5), ("t", 5), ("f", "5"))
        )
    )
    assert found.table("flows")["end"].tolist() == ["start", "step", "finish"]
    assert len(set(found.table("flows")["flow_id"])) == 1  # whether written as number or text


def test_raw_arguments_stay_reachable(tmp_path):
    nested = {"Input Dims": [[2, [3]], []], "occupancy": {"limit": "warps"}, "text": "µ \u2028"}
    bare = {"ph": "X", "cat": "cpu_op", "name": "bare", "ts": 1}
    path = tmp_path / "trace.json"
    path.write_bytes(tiny.text([tiny.operator("op", 0, 1, **nested), bare]))
    (found,) = maiprof_nb.load(path).recordings
    assert found.args(0) == nested
    assert found.args(1) == {}


@pytest.mark.parametrize("args", ["null", "[1]", "7", '"text"'])
def test_arguments_that_are_no_object_are_no_arguments(args, tmp_path):
    event = operator_at("1").replace("}", f', "args": {args}}}')
    path = tmp_path / "trace.json"
    path.write_text(f'{{"traceEvents": [{event}]}}')
    (found,) = maiprof_nb.load(path).recordings
    assert found.args(0) == {}
    assert found.table("operators")["external_id"].isna().tolist() == [True]


def test_arguments_of_odd_types_are_missing_values():
    event = tiny.kernel(0, 1, correlation=2**70, bytes="many")
    event["args"] |= {"External id": "0x1f", "blocks per SM": "inf", "stream": -1}
    (kernel,) = tiny.recording(event).table("kernels").to_dict("records")
    assert all(pd.isna(kernel[key]) for key in ("correlation", "size_bytes", "blocks_per_sm"))
    assert kernel["external_id"] == 31
    assert kernel["stream"] == -1


def test_a_bare_list_is_a_trace_without_metadata():
    found = kineto.read(f"\n [{operator_at('1')}]".encode(), "x.json")
    assert len(found.table("operators")) == 1
    assert found.meta == {}


def test_metadata_behind_the_events_counts_too():
    data = f'{{"traceEvents": [{operator_at("1")}], "distributedInfo": {{"rank": 4}}}}'
    assert kineto.read(data.encode(), "x.json").meta == {"distributedInfo": {"rank": 4}}


def test_memory_instants():
    args = {"Device Type": 1, "Device Id": 0, "Addr": 140000000000000, "Bytes": -512}
    args |= {"Total Allocated": 1024, "Total Reserved": 2048}
    found = tiny.recording(
        {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "ts": 2, "args": args},
        {"ph": "i", "name": "[memory]", "ts": 3, "args": {"Bytes": 64}},  # as of 2021
        {"ph": "i", "name": "Iteration Start: PyTorch Profiler", "ts": 3},
    )
    memory = found.table("memory_events")
    assert memory["size_bytes"].tolist() == [-512, 64]
    assert memory["allocated_bytes"].tolist() == [1024, pd.NA]
    assert len(found.table("other_events")) == 1


def one_of_each() -> list[tiny.Event]:
    host = [
        tiny.operator("aten::add", 10, 5),
        tiny.annotation("mine", 11, 2),
        tiny.step(4, 9, 30),
        tiny.python("a.py(1): f", 12, 1),
        tiny.launch(1, 13),
        tiny.complete("cuModuleLoad", "cuda_driver", 14, 1),
    ]
    device = [
        tiny.kernel(15, 2, correlation=1),
        tiny.memcpy(18, 1),
        tiny.kernel(15, 2, name="mine", category="gpu_user_annotation"),
        tiny.complete("sync", "cuda_sync", 20, 1),
        tiny.complete("overhead", "overhead", 21, 1),
        tiny.complete("PyTorch Profiler (0)", "Trace", 0, 99, pid="Spans"),
    ]
    other = [
        {"ph": "s", "cat": "ac2g", "id": 1, "ts": 13, "pid": 1, "tid": 1},
        {"ph": "f", "cat": "ac2g", "id": 1, "ts": 15, "pid": 0, "tid": 7, "bp": "e"},
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}},
        {"ph": "C", "name": "use", "ts": 16, "pid": 0, "args": {"a": 1.5}},
        {"ph": "i", "name": "[memory]", "ts": 17, "args": {"Bytes": 8}},
        {"ph": "B", "name": "open", "ts": 18},
        {"ph": "", "name": "nothing"},
        {"name": "no phase"},
        {"ph": "X", "cat": "made_up_2031", "name": "new", "ts": 19, "dur": 1},
        {"ph": "C", "name": "no values", "ts": 20, "pid": 0},
    ]
    return host + device + other


def test_every_event_is_in_exactly_one_table():
    """But a step is a row of `annotations` too, and every kind has its place."""
    events = one_of_each()
    found = tiny.recording(*events)
    places = [
        event
        for name, table in found.tables.items()
        if name != "steps"
        for event in table["event"].tolist()
    ]
    assert sorted(places) == list(range(len(events)))
    rows = {name: len(table) for name, table in found.tables.items()}
    assert rows["operators"] == rows["python_calls"] == rows["steps"] == 1
    assert rows["launches"] == rows["kernels"] == rows["annotations"] == rows["flows"] == 2
    assert rows["device_annotations"] == rows["counters"] == rows["memory_events"] == 1


def test_events_are_counted_as_they_are_written():
    found = tiny.recording(*one_of_each())
    assert sum(found.events.values()) == len(one_of_each())
    for key, count in {
        "X/cpu_op": 1,
        "X/user_annotation": 2,
        "X/gpu_user_annotation": 1,
        "X/made_up_2031": 1,
        "s/ac2g": 1,
        "M/": 1,
        "C/": 2,
        "i/": 1,
        "/": 2,
    }.items():
        assert found.events[key] == count, key


def test_no_events_at_all():
    found = read("")
    assert found.events == {}
    assert found.span.dur_ns == 0
    assert all(len(table) == 0 for table in found.tables.values())


def test_odd_names_are_read():
    """A lone surrogate, controls and a name that is a number come from real writers."""
    names = ['"\\ud800 half"', '"tab\\tnul\\u0000"', "5", "null", '"\\ufffd"']
    events = ",".join(operator_at("1").replace('"op"', name) for name in names)
    found = read(events)
    assert len(found.table("operators")) == len(names)
    assert sum(found.events.values()) == len(names)
