"""The simulated recordings: made again byte for byte, and true.

The right values come from two sides that share no code: ``truth.json`` is what the simulator
knows from its own schedule, and the recounts below read only the files, with the standard
library (JSON numbers as exact decimals) and a list of every microsecond's edge.
"""

from __future__ import annotations

import bisect
import csv
import gzip
import importlib.util
import io
import itertools
import json
import pickle
from collections import Counter, defaultdict
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path

import pytest

from maiprof_nb.collection.simulation import SCENARIOS, recording_files, simulate

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
NAMES = list(SCENARIOS)
DEVICE_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset")
US = Decimal(1000)
MIB = 2**20


def folder(name):
    return SAMPLES / name if name == "leak" else SAMPLES / "case_study" / name


@cache
def trace(name):
    text = gzip.decompress((folder(name) / "rank0.pt.trace.json.gz").read_bytes())
    found = json.loads(text, parse_float=Decimal)
    for event in found["traceEvents"]:
        event["start"] = exact(event["ts"])
        event["end"] = event["start"] + exact(event.get("dur", 0))
    return found


@cache
def events(name, category):
    return [event for event in trace(name)["traceEvents"] if event.get("cat") == category]


@cache
def truth(name):
    return json.loads((SAMPLES / "truth" / f"{name}.json").read_text())


@cache
def snapshot(name):
    return NoClasses(
        io.BytesIO(gzip.decompress((folder(name) / "memory.pickle.gz").read_bytes()))
    ).load()


class NoClasses(pickle.Unpickler):
    def find_class(self, module, name):
        raise AssertionError(f"the snapshot asks for {module}.{name}")


def exact(us):
    ns = us * US
    assert ns == int(ns), "a time that is not a whole number of ns"
    return int(ns)


def device_work(name):
    return [event for category in DEVICE_CATEGORIES for event in events(name, category)]


def steps(name):
    found = [e for e in events(name, "user_annotation") if e["name"].startswith("ProfilerStep#")]
    return sorted(found, key=lambda event: event["start"])


def window(name):
    """Start of the first step to the end of the last one or of what was launched in it."""
    start, end = steps(name)[0]["start"], steps(name)[-1]["end"]
    launches = {
        event["args"]["correlation"]
        for event in events(name, "cuda_runtime")
        if start <= event["start"] < end
    }
    ends = [e["end"] for e in device_work(name) if e["args"]["correlation"] in launches]
    return start, max(end, *ends)


def idle_gaps(name):
    """Where a counter of running activities stands at zero, edge by edge."""
    start, end = window(name)
    edges = Counter()
    for event in device_work(name):
        edges[max(start, min(event["start"], end))] += 1
        edges[max(start, min(event["end"], end))] -= 1
    running, at, gaps = 0, start, []
    for edge in [*sorted(edges), end]:
        if running == 0 and edge > at:
            gaps.append((at, edge))
        running, at = running + edges.pop(edge, 0), edge
    return gaps


@pytest.mark.parametrize("name", NAMES)
def test_made_again_the_recording_is_the_same(name):
    """Only builds of zlib may differ, so packed files are compared unpacked if need be."""
    for file, data in recording_files(simulate(SCENARIOS[name])).items():
        path = folder(name) / file if file != "truth.json" else SAMPLES / "truth" / f"{name}.json"
        stored = path.read_bytes()
        same = stored == data or (
            file.endswith(".gz") and gzip.decompress(stored) == gzip.decompress(data)
        )
        assert same, file


def test_the_check_of_the_script_sees_a_difference(tmp_path):
    spec = importlib.util.spec_from_file_location("make", SAMPLES / "make.py")
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    make.HERE = tmp_path
    leak = SCENARIOS["leak"]
    make.write(leak)
    assert make.differences(leak) == []
    (tmp_path / "leak" / "gpu.csv").write_text("other")
    (tmp_path / "truth" / "leak.json").unlink()
    assert make.differences(leak) == ["leak/gpu.csv", "truth/leak.json"]


@pytest.mark.parametrize("name", NAMES)
def test_small_enough_and_marked_as_simulated(name):
    sizes = [path.stat().st_size for path in folder(name).iterdir()]
    assert sum(sizes) <= 3_000_000
    for marked in (trace(name), snapshot(name)):
        assert marked["simulated"]["scenario"] == name
    assert "Simulated" in trace(name)["deviceProperties"][0]["name"]
    assert (folder(name) / "dcgm.prom").read_text().startswith("# simulated")
    assert "Simulated" in (folder(name) / "gpu.csv").read_text().splitlines()[1]


@pytest.mark.parametrize("name", NAMES)
def test_idle_time_and_its_gaps_are_the_truth(name):
    known, gaps = truth(name), idle_gaps(name)
    start, end = window(name)
    assert [start, end] == known["window_ns"]
    idle = sum(stop - begin for begin, stop in gaps)
    assert idle == known["device"]["idle_ns"]
    assert end - start - idle == known["device"]["busy_ns"]
    long = [(begin, stop) for begin, stop in gaps if stop - begin >= 100_000]
    assert long == [(gap["start_ns"], gap["end_ns"]) for gap in known["gaps"]["from_100_us"]]
    counted = [stop - begin for begin, stop in gaps if stop - begin >= 1_000]
    causes = known["gaps"]["by_cause"].values()
    assert sum(counted) == sum(cause["ns"] for cause in causes)
    assert len(counted) == sum(cause["count"] for cause in causes)


@pytest.mark.parametrize("name", NAMES)
def test_causes_of_long_gaps_are_what_the_python_frames_show(name):
    """In a gap put down to input, sharded_iterrows covers most of the main thread's time."""
    frames = [e for e in events(name, "python_function") if "sharded_iterrows" in e["name"]]
    reads = [e for e in events(name, "python_function") if "read_sub_dataset" in e["name"]]
    assert len(reads) == len(truth(name)["sub_dataset_reads"]) >= 1
    for gap in truth(name)["gaps"]["from_100_us"]:
        if gap["cause"] != "input" or gap["detail"] == "copy":
            continue
        among = reads if gap["detail"] == "sub-dataset" else frames
        span = range(gap["start_ns"], gap["end_ns"])
        covered = sum(max(0, min(e["end"], span.stop) - max(e["start"], span.start)) for e in among)
        assert covered > 0.5 * len(span)
        assert sum(gap["shares_ns"].values()) == len(span)


PHASE_MARKS = (
    ("enumerate(DataLoader)", "data loading"),
    ("nn.Module: ClickModel", "forward"),
    ("nn.Module: BCEWithLogitsLoss", "forward"),
    ("torch/amp/grad_scaler.py(177): scale", "backward"),
    ("torch/_tensor.py(570): backward", "backward"),
    ("torch/amp/grad_scaler.py(363): step", "optimizer"),
    ("torch/optim/optimizer.py(467): wrapper", "optimizer"),
    ("torch/amp/grad_scaler.py(484): update", "optimizer"),
)


def phase_at(name):
    """The phase of every nanosecond, by the ranges and frames that stand for one."""
    marked = [
        (event["start"], event["end"], phase)
        for event in (*events(name, "user_annotation"), *events(name, "python_function"))
        for mark, phase in PHASE_MARKS
        if event["name"].startswith(mark)
    ]
    spans, covered = {}, 0
    for start, end, phase in sorted(marked):
        if start >= covered:
            spans[start], covered = (end, phase), end
    starts = sorted(spans)

    def phase(ts):
        place = bisect.bisect_right(starts, ts) - 1
        end, found = spans[starts[place]] if place >= 0 else (0, "other")
        return found if ts < end else "other"

    return phase


@pytest.mark.parametrize("name", NAMES)
def test_kernels_of_every_phase_are_the_truth(name):
    """A kernel belongs to the phase that launched it."""
    known = truth(name)
    for category in DEVICE_CATEGORIES:
        assert len(events(name, category)) == known["device"]["activities"].get(category, 0)
    launches = {e["args"]["correlation"]: e["start"] for e in events(name, "cuda_runtime")}
    phase = phase_at(name)
    found = Counter(phase(launches[e["args"]["correlation"]]) for e in events(name, "kernel"))
    assert found == {
        name: numbers["kernels"] for name, numbers in known["phases"].items() if numbers["kernels"]
    }


@pytest.mark.parametrize("name", NAMES)
def test_data_loading_of_every_step_is_the_truth(name):
    """Batches, and the iterators that are made at the beginning of an epoch."""
    loading = [
        event
        for event in (*events(name, "user_annotation"), *events(name, "python_function"))
        if event["name"].startswith("enumerate(DataLoader)")
        or event["name"].endswith("dataloader.py(492): __iter__")
    ]
    host = truth(name)["phases"]["data loading"]["host_ns_per_step"]
    assert len(host) == len(steps(name)) == SCENARIOS[name].steps
    for step, known in zip(steps(name), host, strict=True):
        inside = [e for e in loading if step["start"] <= e["start"] < step["end"]]
        found = sum(event["end"] - event["start"] for event in inside)
        assert 0 <= known - found < 5_000  # the frame round the range


@pytest.mark.parametrize("name", NAMES)
def test_every_read_follows_ten_epochs(name):
    """Calls of train_epoch(), and iterators made in them, from one read to the next."""
    calls = sorted(events(name, "python_function"), key=lambda event: event["start"])
    epochs = [e for e in calls if e["name"].endswith("): train_epoch")]
    made = [e for e in calls if e["name"].endswith("dataloader.py(492): __iter__")]
    assert len(epochs) == len(made)
    for epoch, iterator in zip(epochs, made, strict=True):
        assert epoch["start"] <= iterator["start"] < iterator["end"] <= epoch["end"]
    reads = [e["start"] for e in calls if "read_sub_dataset" in e["name"]]
    for one, other in itertools.pairwise(reads):
        assert sum(one <= epoch["start"] < other for epoch in epochs) == 10


@pytest.mark.parametrize("name", NAMES)
def test_operators_say_what_they_were_given(name):
    """As record_shapes=True writes it: four lists of one length, strides beside their shapes."""
    told = [event for event in events(name, "cpu_op") if "Input Dims" in event["args"]]
    assert {event["name"] for event in events(name, "cpu_op")} - {e["name"] for e in told} == {
        n for n in {e["name"] for e in events(name, "cpu_op")} if n.startswith("autograd::engine::")
    }
    for event in told:
        keys = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
        dims, types, strides, values = (event["args"][key] for key in keys)
        assert len(dims) == len(types) == len(strides) == len(values)
        for shape, kind, stride, value in zip(dims, types, strides, values, strict=True):
            assert len(shape) == len(stride)
            assert (kind in ("Scalar", "ScalarList")) == (value != "")


@pytest.mark.parametrize("name", NAMES)
def test_tensor_core_time_is_the_truth(name):
    """Half-precision matrix products are the only tensor-core kernels of this job."""
    total = sum(e["end"] - e["start"] for e in events(name, "kernel"))
    tensor = sum(e["end"] - e["start"] for e in events(name, "kernel") if "s16816gemm" in e["name"])
    assert total == truth(name)["device"]["kernel_ns"]
    assert tensor == truth(name)["device"]["tensor_core_kernel_ns"]
    assert (tensor > 0) == SCENARIOS[name].mixed_precision


@pytest.mark.parametrize("name", NAMES)
def test_no_kernel_before_its_launch_and_streams_in_order(name):
    launches = {event["args"]["correlation"]: event for event in events(name, "cuda_runtime")}
    streams = defaultdict(list)
    for event in device_work(name):
        call = launches[event["args"]["correlation"]]
        assert event["start"] >= call["end"] > call["start"]
        assert event["args"].get("External id") == call["args"].get("External id", 0)
        streams[event["args"]["stream"]].append(event)
    for found in streams.values():
        found.sort(key=lambda event: event["args"]["correlation"])
        assert all(a["end"] <= b["start"] for a, b in itertools.pairwise(found))


@pytest.mark.parametrize("name", NAMES)
def test_every_arrow_has_both_ends(name):
    for category in ("ac2g", "fwdbwd"):
        ends = defaultdict(list)
        for event in events(name, category):
            ends[event["id"]].append((event["ph"], event["start"]))
        assert ends
        for found in ends.values():
            assert sorted(end for end, _ in found) == ["f", "s"]
            times = dict(found)
            assert times["s"] < times["f"]


@pytest.mark.parametrize("name", NAMES)
def test_host_ranges_nest(name):
    """Python frames, operators, named ranges and runtime calls of a thread lie in one another."""
    lanes = defaultdict(list)
    for category in ("python_function", "cpu_op", "user_annotation", "cuda_runtime"):
        for event in events(name, category):
            lanes[event["tid"]].append(event)
    for found in lanes.values():
        found.sort(key=lambda event: (event["start"], -event["end"]))
        open_ends = []
        for event in found:
            while open_ends and open_ends[-1] <= event["start"]:
                open_ends.pop()
            assert not open_ends or event["end"] <= open_ends[-1], event["name"]
            open_ends.append(event["end"])


@pytest.mark.parametrize("name", NAMES)
def test_python_calls_lie_inside_their_parents(name):
    calls = {event["args"]["Python id"]: event for event in events(name, "python_function")}
    roots = 0
    for event in calls.values():
        parent = calls.get(event["args"]["Python parent id"])
        if parent is None:
            roots += 1
            continue
        assert parent["tid"] == event["tid"]
        assert parent["start"] <= event["start"] <= event["end"] <= parent["end"]
    assert roots == SCENARIOS[name].num_worker_threads + 1


@pytest.mark.parametrize("name", NAMES)
def test_blocks_tile_their_segments(name):
    for segment in snapshot(name)["segments"]:
        at, states = segment["address"], []
        for block in segment["blocks"]:
            assert block["address"] == at
            assert block["size"] % 512 == 0
            at += block["size"]
            states.append(block["state"])
        assert at == segment["address"] + segment["total_size"]
        assert ("inactive", "inactive") not in itertools.pairwise(states)
        if segment["segment_type"] == "small":
            assert segment["total_size"] == 2 * MIB
        else:
            assert segment["total_size"] == 20 * MIB or segment["total_size"] >= 10 * MIB
            assert segment["total_size"] % (2 * MIB) == 0


@pytest.mark.parametrize("name", NAMES)
def test_memory_is_the_truth(name):
    """Replay of the log with a size for every address: peak, what is left, what the blocks say."""
    known, found = truth(name)["memory"], snapshot(name)
    live, now, peak, reserved, last = {}, 0, 0, 0, 0
    for event in found["device_traces"][0]:
        assert event["time_us"] >= last
        last = event["time_us"]
        if event["action"] == "alloc":
            assert event["addr"] not in live
            live[event["addr"]] = event["size"]
            now += max(512, -(-event["size"] // 512) * 512)
        elif event["action"] == "free_completed":
            size = live.pop(event["addr"])
            assert size == event["size"]
            now -= max(512, -(-size // 512) * 512)
        elif event["action"] == "segment_alloc":
            reserved += event["size"]
        peak = max(peak, now)
    blocks = [block for segment in found["segments"] for block in segment["blocks"]]
    used = {b["address"]: b for b in blocks if b["state"] == "active_allocated"}
    assert live == {address: block["requested_size"] for address, block in used.items()}
    assert sum(block["size"] for block in used.values()) == known["end_allocated_bytes"]
    assert sum(live.values()) == known["end_requested_bytes"]
    assert reserved == known["end_reserved_bytes"]
    # a large block may keep up to 1 MiB more than its rounded request; so may the peak, each
    slack = known["end_allocated_bytes"] - sum(-(-size // 512) * 512 for size in live.values())
    assert 0 <= slack <= len(live) * 2**20
    assert peak <= known["peak_allocated_bytes"] <= peak + len(live) * 2**20


@pytest.mark.parametrize("name", NAMES)
def test_floor_of_memory_rises_by_the_known_leak(name):
    """Live bytes at the starts of ProfilerSteps, from the snapshot alone."""
    found = snapshot(name)
    starts = [
        mark["time_us"]
        for mark in found["external_annotations"]
        if mark["stage"] == "START" and mark["name"].startswith("ProfilerStep#")
    ]
    floors, now, log = [], 0, iter(found["device_traces"][0])
    event = next(log)
    for start in starts[2:]:  # the first step makes the optimizer's state
        while event["time_us"] < start:
            if event["action"] == "alloc":
                now += event["size"]
            elif event["action"] == "free_completed":
                now -= event["size"]
            event = next(log)
        floors.append(now)
    rises = {later - earlier for earlier, later in itertools.pairwise(floors)}
    assert rises == {truth(name)["memory"]["leak_bytes_per_step"]}


def test_leaked_blocks_carry_the_known_stack():
    known = truth("leak")["memory"]
    stacks = Counter()
    for segment in snapshot("leak")["segments"]:
        for block in segment["blocks"]:
            if block["requested_size"] == known["leak_bytes_per_step"]:
                frames = [f for f in block["frames"] if f["line"]]
                stacks[tuple(f"{f['filename']}:{f['line']} {f['name']}" for f in frames)] += (
                    block["state"] == "active_allocated"
                )
    assert stacks[tuple(known["leak_stack"])] == known["leaked_tensors"] == 40


@pytest.mark.parametrize("name", NAMES)
def test_all_files_share_one_clock(name):
    """Marks that the trace and the snapshot both hold, and the span of the metrics."""
    base = trace(name)["baseTimeNanoseconds"]
    first = steps(name)[0]
    marks = {
        mark["name"]: mark["time_us"]
        for mark in snapshot(name)["external_annotations"]
        if mark["stage"] == "START" and mark["name"].startswith("ProfilerStep#")
    }
    assert (base + first["start"]) // 1000 == marks[first["name"]]
    rows = list(
        csv.reader(io.StringIO((folder(name) / "gpu.csv").read_text()), skipinitialspace=True)
    )
    stamps = [
        datetime.strptime(row[0], "%Y/%m/%d %H:%M:%S.%f").replace(tzinfo=UTC).timestamp()
        for row in rows[1:]
    ]
    assert stamps[0] < (base + first["start"]) / 1e9
    assert stamps[-1] > (base + steps(name)[-1]["end"]) / 1e9
    assert len(set(stamps)) == len(stamps)


@pytest.mark.parametrize("name", NAMES)
def test_metrics_follow_the_kernels(name):
    """SM occupancy of every half second again from the kernels of the trace."""
    base = trace(name)["baseTimeNanoseconds"]
    recorded = (steps(name)[0]["start"], steps(name)[-1]["end"])
    weighted = [
        (e["start"], e["end"], e["args"]["est. achieved occupancy %"] / 100)
        for e in events(name, "kernel")
    ]
    samples = {}
    for line in (folder(name) / "dcgm.prom").read_text().splitlines():
        if line.startswith("DCGM_FI_PROF_SM_OCCUPANCY"):
            value, ms = line.rsplit(" ", 2)[1:]
            samples[int(ms) * 1_000_000 - base] = float(value)
    inside = [at for at in samples if recorded[0] <= at - 500_000_000 and at <= recorded[1]]
    assert len(inside) >= 3
    for at in inside[::7]:
        begin = at - 500_000_000
        total = sum(max(0, min(e, at) - max(s, begin)) * w for s, e, w in weighted)
        assert samples[at] == pytest.approx(total / 500_000_000, abs=1e-6)


def test_the_case_study_starts_where_its_report_did():
    """Published: idle for more than half, SM utilisation 9.1 %, no tensor cores, 47.13 % memory."""
    known = truth("before")
    assert known["device"]["idle_share"] > 0.5
    assert known["metrics"]["sm_occupancy"] == pytest.approx(0.091, abs=0.0005)
    assert known["metrics"]["tensor_active"] == 0
    assert known["metrics"]["peak_memory_share"] == pytest.approx(0.4713, abs=0.00005)
    assert len(known["sub_dataset_reads"]) == 2


def test_every_fix_mends_what_it_aims_at():
    before, workers, batch, amp, optimizer = (truth(name) for name in NAMES[:5])
    rates = [known["rows_per_s"] for known in (before, workers, batch, amp, optimizer)]
    assert rates == sorted(rates)
    assert workers["device"]["idle_share"] < 0.5 * before["device"]["idle_share"]
    assert batch["metrics"]["peak_memory_share"] > 1.4 * workers["metrics"]["peak_memory_share"]
    assert amp["device"]["tensor_core_share"] > 0.2
    kernels = [known["phases"]["optimizer"]["kernels_per_step"] for known in (amp, optimizer)]
    assert kernels[1] < kernels[0] / 20
