from __future__ import annotations

import contextlib
import io
import os
import pickle
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from maiprof_nb.errors import LoadError
from maiprof_nb.loading import snapshot, sources
from maiprof_nb.loading.unpickling import plain_data
from maiprof_nb.recording import Recording
from tests.memory_by_hand import totals

CORPUS = (
    Path(os.environ.get("MAIPROF_CORPUS", Path(__file__).parents[3] / "shared" / "corpus"))
    / "memory"
)
MIB = 2**20


def _table_of_sources():
    """Rows of the corpus' SOURCES.md: what those who collected the files counted in them."""
    if not (CORPUS / "SOURCES.md").exists():
        return {}
    lines = (CORPUS / "SOURCES.md").read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]
    return {
        row[0].strip("`"): row for row in cells if row[0].startswith("`") and ".pickle" in row[0]
    }


SOURCES = _table_of_sources()
SYNTHETIC = "mosaic/output.pickle"
NO_CORPUS = [pytest.param("", marks=pytest.mark.skip(reason=f"no corpus at {CORPUS}"))]
FILES = [pytest.param(name, id=name) for name in SOURCES] or NO_CORPUS
REAL_FILES = [pytest.param(n, id=n) for n in SOURCES if n != SYNTHETIC] or NO_CORPUS


def _content(name: str) -> bytes:
    return sources.content(str(CORPUS / name))[0]


@pytest.fixture(scope="module")
def loaded():
    """Recordings by name, each read once."""
    kept: dict[str, Recording] = {}

    def of(name: str) -> Recording:
        if name not in kept:
            kept[name] = snapshot.read(_content(name), name)
        return kept[name]

    return of


def _plain(name: str):
    """The pickle as Python's own unpickler gives it, apart from this project's reading."""
    return pickle.Unpickler(io.BytesIO(_content(name))).load()


def _corpus_only(name: str) -> None:
    if name not in SOURCES:
        pytest.skip(f"no corpus at {CORPUS}")


def test_the_corpus_has_its_thirty_snapshots():
    if not SOURCES:
        pytest.skip(f"no corpus at {CORPUS}")
    assert len(SOURCES) == 30


@pytest.mark.parametrize("name", FILES)
def test_counts_are_those_of_the_corpus_table(name, loaded):
    recording = loaded(name)
    row = SOURCES[name]
    segments, blocks = (int(n) for n in row[5].split(" / "))
    per_device = [int(n) for n in row[6].split(",")]
    events = recording.table("allocator_events")

    assert snapshot.sniff(_content(name))
    assert len(recording.table("segments")) == segments
    assert len(recording.table("blocks")) == blocks
    found = events["device"].value_counts()
    assert [int(found.get(device, 0)) for device in range(len(per_device))] == per_device
    by_device = Counter(recording.table("segments")["device"])
    assert by_device == {int(device): int(n) for device, n in re.findall(r"(\d+):(\d+)", row[7])}
    if row[8] == "no times":
        assert recording.clock.ordered_only
        assert recording.clock.epoch_ns is None
        assert events["ts_ns"].equals(events.groupby("device").cumcount())
    else:
        span_ns = int(events["ts_ns"].max())
        assert events["ts_ns"].min() == 0
        assert span_ns / 1e9 == pytest.approx(float(row[8].split()[0]), abs=6e-4)
    reserved, allocated = (float(n) for n in re.findall(r"\d+", row[9]))
    state = recording.table("segments")
    assert state["size_bytes"].sum() / MIB == pytest.approx(reserved, abs=1)
    assert state["allocated_bytes"].sum() / MIB == pytest.approx(allocated, abs=1)


@pytest.mark.parametrize("name", FILES)
def test_events_are_counted_as_written(name, loaded):
    rows = [row for trace in _plain(name)["device_traces"] for row in trace]
    assert loaded(name).events == Counter(row["action"] for row in rows)
    events = loaded(name).table("allocator_events")
    assert events["size_bytes"].tolist() == [row["size"] for row in rows]
    timed = [row["time_us"] for row in rows if "time_us" in row]
    if timed:
        epoch_ns = loaded(name).clock.epoch_ns
        assert ((events["ts_ns"] + epoch_ns) // 1000).tolist() == timed


@pytest.mark.parametrize("name", FILES)
def test_the_curve_ends_at_the_final_state(name, loaded):
    """Baseline + log = active bytes at the end, per device (figures: Memory)."""
    recording = loaded(name)
    blocks = recording.table("blocks")
    active = blocks[blocks["state"] != "inactive"].groupby("device")["size_bytes"].sum()
    lives = recording.table("allocations")
    alive = lives[lives["end_ns"].isna()].groupby("device")["size_bytes"].sum()
    assert alive.to_dict() == active.to_dict()
    if name != SYNTHETIC:  # its segments contradict its blocks
        stated = recording.table("segments").groupby("device")["active_bytes"].sum()
        assert alive.to_dict() == stated[stated > 0].to_dict()
    assert (lives["size_bytes"] >= lives["requested_bytes"]).all()
    assert not (lives["end_ns"] < lives["ts_ns"]).any()


def _by_hand(name: str) -> dict[int, tuple[int, int]]:
    """(baseline, peak) by device; totals are looked at when all of one time has happened."""
    content = _plain(name)
    found = {}
    for device, trace in enumerate(content["device_traces"]):
        if trace:
            allocated = totals(content, device).allocated
            times = [row.get("time_us", number) for number, row in enumerate(trace)]
            whole = np.array([a != b for a, b in zip(times, [*times[1:], None], strict=True)])
            found[device] = int(allocated[0]), int(allocated[np.append(True, whole)].max())
    return found


def _curve(lives: pd.DataFrame) -> pd.Series:
    """Active bytes after each moment of the log."""
    made = lives.loc[~lives["before_log"]].groupby("ts_ns")["size_bytes"].sum()
    freed = lives.dropna(subset=["end_ns"]).groupby("end_ns")["size_bytes"].sum()
    change = made.astype("int64").sub(freed.astype("int64"), fill_value=0)
    return lives.loc[lives["before_log"], "size_bytes"].sum() + change.sort_index().cumsum()


@pytest.mark.parametrize("name", REAL_FILES)
def test_baseline_and_peak_equal_a_replay_from_the_end(name, loaded):
    lives = loaded(name).table("allocations")
    for device, (baseline, peak) in _by_hand(name).items():
        mine = lives[lives["device"] == device]
        assert mine.loc[mine["before_log"], "size_bytes"].sum() == baseline
        assert max([baseline, *_curve(mine)]) == peak


@pytest.mark.parametrize("name", FILES)
def test_state_equals_torchs_own_reading(name, loaded):
    viz = pytest.importorskip("torch.cuda._memory_viz")
    content = _plain(name)
    active = sum(viz.calc_active(segment) for segment in content["segments"])
    blocks = loaded(name).table("blocks")
    assert blocks.loc[blocks["state"] == "allocated", "size_bytes"].sum() == active
    if name != SYNTHETIC and "address" in content["segments"][0]["blocks"][0]:
        with contextlib.redirect_stdout(io.StringIO()):
            said = viz.segsum(content)
        total = int(blocks.loc[blocks["state"] == "allocated", "requested_bytes"].sum())
        assert f"total_allocated: {viz.Bytes(total)}" in said
        reserved = int(loaded(name).table("segments")["size_bytes"].sum())
        assert f"total_reserved: {viz.Bytes(reserved)}" in said


@pytest.mark.parametrize(
    ("name", "before_gb"),
    [  # SOURCES.md: "13 GB already allocated before recording"; "one free of 1.4 GB ..."
        ("cs336-kk/memory_ctx128_forward.pickle", 13.0),
        ("octree-nca/my_snapshot_4.pickle", 1.4),
    ],
)
def test_what_was_there_before_the_log_is_known(name, before_gb, loaded):
    _corpus_only(name)
    recording = loaded(name)
    lives = recording.table("allocations")
    assert lives.loc[lives["before_log"], "size_bytes"].sum() / 1e9 == pytest.approx(
        before_gb, rel=0.1
    )
    note = next(note for note in recording.notes if note.code == "log-begins-late")
    assert note.count == lives["before_log"].sum()
    assert _curve(lives).min() >= 0


def test_a_leak_like_floor_keeps_its_362_blocks(loaded):
    """SOURCES.md: my_snapshot_5 leaves 362 blocks alive that its log saw made."""
    name = "octree-nca/my_snapshot_5.pickle"
    _corpus_only(name)
    lives = loaded(name).table("allocations")
    kept = lives[lives["end_ns"].isna() & ~lives["before_log"]]
    assert len(kept) == 362
    assert kept["stack"].notna().all()


def test_stacks_are_distinct_and_labelled_by_the_users_own_frame(loaded):
    name = "cs336-charan/memory_snapshot.pickle.gz"
    _corpus_only(name)
    recording = loaded(name)
    stacks = recording.table("stacks")
    assert stacks["frames"].is_unique
    assert stacks["stack"].tolist() == list(range(len(stacks)))
    first = next(row for row in _plain(name)["device_traces"][0] if row.get("frames"))
    events = recording.table("allocator_events")
    text = stacks["frames"].iloc[int(events["stack"].dropna().iloc[0])]
    expected = [
        f"{f['name']} ({f['filename']}:{f['line']})" if f["filename"] else f["name"]
        for f in first["frames"]
    ]
    assert text.split("\n") == expected
    for stack in stacks.itertuples():
        own = [
            line
            for line in stack.frames.split("\n")
            if re.search(r"\.py:\d+\)$", line)
            and not re.search(r"torch/|-packages/|lib/python3", line)
        ]
        assert stack.label == own[0]


# --- made by hand -------------------------------------------------------------------------

FRAMES = [
    {"name": "c10::alloc", "filename": "??", "line": 0},
    {"name": "forward", "filename": "/env/site-packages/transformers/bert.py", "line": 114},
    {"name": "step", "filename": "/home/me/train.py", "line": 12},
]
BACKWARD = [  # names as in cs336-kk/memory_ctx128_fullstep, whose backward thread has no Python
    {"name": "torch::unwind::unwind()", "filename": "??", "line": 0},
    {"name": "at::_ops::mm::call(at::Tensor const&, at::Tensor const&)", "filename": "", "line": 0},
    {"name": "torch::autograd::generated::MmBackward0::apply()", "filename": "", "line": 0},
    {"name": "execute_native_thread_routine", "filename": "thread48.o", "line": 0},
]


def _segment(blocks, *, device=0, address=0x1000, **more):
    size = sum(block["size"] for block in blocks)
    active = sum(block["size"] for block in blocks if block["state"].startswith("active"))
    return {
        "device": device, "address": address, "total_size": size, "allocated_size": active,
        "active_size": active, "stream": 0, "segment_type": "small", "blocks": blocks, **more,
    }  # fmt: skip


def _block(size, state="active_allocated", **more):
    return {"size": size, "requested_size": size - 12, "state": state, **more}


def _event(action, address, size=500, **more):
    return {"action": action, "addr": address, "size": size, "stream": 0, **more}


def _read(segments=(), traces=(), **more) -> Recording:
    content = {"segments": list(segments), "device_traces": [list(t) for t in traces], **more}
    return snapshot.read(pickle.dumps(content), "by hand")


def _codes(recording: Recording) -> dict[str, int]:
    return {note.code: note.count for note in recording.notes}


def test_a_bare_list_of_segments_is_a_snapshot():
    """Layout of torch.cuda.memory_snapshot() pickled (FORMAT.md, first row)."""
    recording = snapshot.read(
        pickle.dumps([_segment([_block(512), _block(1024, "inactive")])]), "x"
    )
    assert recording.table("blocks")["address"].tolist() == [0x1000, 0x1200]
    assert recording.table("blocks")["requested_bytes"].isna().tolist() == [False, True]
    assert _codes(recording) == {"log-empty": 1}
    assert recording.meta["devices"] == [0]


def test_two_devices_are_paired_apart():
    """The same address on two devices is two allocations."""
    recording = _read(
        [_segment([_block(512)]), _segment([_block(512)], device=1)],
        [
            [_event("alloc", 0x1000, time_us=10), _event("free_completed", 0x1000, time_us=30)],
            [_event("alloc", 0x1000, time_us=20)],
        ],
    )
    lives = recording.table("allocations")
    # The block of device 0 was free when the log ended, so it was made after it: the last row.
    assert lives["device"].tolist() == [0, 1, 0]
    assert lives["ts_ns"].tolist() == [0, 10_000, 20_000]
    assert lives["end_ns"].tolist() == [20_000, pd.NA, pd.NA]
    assert _codes(recording) == {"state-after-log": 1}
    assert recording.clock.epoch_ns == 10_000
    assert recording.clock.uncertainty_ns == 1000


def test_faults_of_the_log_are_told_and_do_not_bend_the_curve():
    events = [
        _event("free_completed", 0x5000),  # made before the log
        _event("alloc", 0x1000),
        _event("alloc", 0x1000, 900),  # the free between them is missing
        _event("alloc", 0x2000),
        _event("free_completed", 0x2000),
        _event("free_completed", 0x2000),  # free already
        _event("alloc", 0x3000),  # not in the final state
        "not an event",
    ]
    recording = _read([_segment([_block(1024)])], [events])
    assert _codes(recording) == {
        "log-begins-late": 1, "frees-unmatched": 1, "allocs-replaced": 1,
        "state-after-log": 1, "events-dropped": 1,
    }  # fmt: skip
    lives = recording.table("allocations")
    assert lives["before_log"].tolist() == [True, False, False, False, False]
    assert lives["size_bytes"].tolist() == [512, 512, 1024, 512, 512]
    assert lives["end_ns"].tolist() == [0, 2, pd.NA, 4, 6]
    assert _curve(lives).iloc[-1] == 1024


def test_a_block_waiting_to_be_freed_is_active_by_either_name():
    for state in ("active_pending_free", "active_awaiting_free"):
        recording = _read(
            [_segment([_block(512, state)])],
            [[_event("alloc", 0x1000), _event("free_requested", 0x1000),
              _event("snapshot", 0, 512)]],
        )  # fmt: skip
        assert recording.table("blocks")["state"].tolist() == ["pending_free"]


def test_a_log_without_completed_frees_ends_lives_at_the_request():
    """``skip_actions`` may leave actions out (FORMAT.md)."""
    recording = _read(traces=[[_event("alloc", 1), _event("free_requested", 1)]])
    assert recording.table("allocations")["end_ns"].tolist() == [1]


def test_the_size_of_a_living_block_is_its_real_one():
    """A large block may exceed its rounded request, since rests up to 1 MiB are not split."""
    recording = _read([_segment([_block(3 * MIB)])], [[_event("alloc", 0x1000, 2 * MIB + 1)]])
    lives = recording.table("allocations")
    assert lives["size_bytes"].tolist() == [3 * MIB]
    assert lives["requested_bytes"].tolist() == [2 * MIB + 1]


def test_roundup_power2_divisions_change_the_rounding():
    """PyTorch's CUDA notes: with 4 divisions 1200 lies between 1024 and 1280 -> 1280 (here KiB)."""
    divisions = {str(1 << power): 0 for power in range(16)} | {"1": 4}
    events = [_event("alloc", 1, 1200 * 1024), _event("alloc", 2, 5 * MIB + 1)]
    recording = _read(traces=[events], allocator_settings={"roundup_power2_divisions": divisions})
    assert recording.table("allocations")["size_bytes"].tolist() == [1280 * 1024, 5 * MIB + 512]


def test_an_out_of_memory_event_keeps_request_and_free_bytes():
    """FORMAT.md: oom has device_free instead of an address."""
    oom = {"action": "oom", "size": 2**34, "device_free": 2**20, "stream": 0, "frames": FRAMES}
    row = _read(traces=[[oom]]).table("allocator_events").iloc[0]
    assert row["device_free_bytes"] == 2**20
    assert row["size_bytes"] == 2**34
    assert row["address"] is pd.NA


def test_labels_prefer_own_code_then_python_then_anything():
    for frames, label in (
        (FRAMES, "step (/home/me/train.py:12)"),
        (FRAMES[:2], "forward (/env/site-packages/transformers/bert.py:114)"),
        (FRAMES[:1], "c10::alloc (??:0)"),
        (BACKWARD, BACKWARD[2]["name"]),
    ):
        stacks = _read(traces=[[_event("alloc", 1, frames=frames)]]).table("stacks")
        assert stacks["label"].tolist() == [label]


def test_history_of_torch_2_0_gives_stack_and_address():
    old = _block(512, history=[{"addr": 0x1200, "real_size": 400, "frames": FRAMES}])
    blocks = _read([_segment([_block(512), old])], [[]]).table("blocks")
    assert blocks["address"].tolist() == [0x1000, 0x1200]
    assert blocks["stack"].tolist() == [pd.NA, 0]


def test_named_ranges_are_paired_and_the_unpaired_counted():
    def mark(stage, name, time_us):
        return {"stage": stage, "name": name, "device": 0, "time_us": time_us}

    marks = [
        mark("END", "lost", 5), mark("START", "step", 10), mark("START", "step", 12),
        mark("END", "step", 15), mark("END", "step", 20), mark("START", "open", 30),
    ]  # fmt: skip
    recording = _read(traces=[[_event("alloc", 1, time_us=10)]], external_annotations=marks)
    ranges = recording.table("allocator_ranges")
    assert ranges["event"].tolist() == [1, 2]
    assert ranges["ts_ns"].tolist() == [0, 2000]
    assert ranges["dur_ns"].tolist() == [10_000, 3000]
    assert _codes(recording)["annotations-unbalanced"] == 2


def test_settings_and_simulation_are_in_meta():
    recording = _read(traces=[[]], allocator_settings={"max_split_size": -1}, simulated=True)
    assert recording.meta["allocator_settings"] == {"max_split_size": -1}
    assert recording.simulated
    assert _codes(recording) == {"snapshot-empty": 1}


# --- what is refused ----------------------------------------------------------------------


class _Evil:
    def __reduce__(self):
        return os.system, ("echo harm",)


def _refused(data: bytes) -> LoadError:
    with pytest.raises(LoadError) as caught:
        snapshot.read(data, "file.pickle")
    assert "file.pickle" in str(caught.value)
    return caught.value


def test_nothing_is_imported_or_called(capfd):
    for content in (_Evil(), {"segments": [_Evil()]}, np.arange(3), Counter("ab")):
        for protocol in range(2, 6):
            assert "nothing is imported" in str(_refused(pickle.dumps(content, protocol)))
    assert capfd.readouterr().out == ""


def test_persistent_objects_are_refused():
    """As in the data.pkl inside a torch.save archive."""

    class Pickler(pickle.Pickler):
        def persistent_id(self, obj):
            return "storage" if isinstance(obj, complex) else None

    buffer = io.BytesIO()
    Pickler(buffer).dump({"segments": [1j]})
    assert "outside" in str(_refused(buffer.getvalue()))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x80\x04Nr\x00\x00\x00\x04.", id="memo of 1 GiB or more"),
        pytest.param(b"\x80\x02Np67108864\n.", id="the same in text"),
        pytest.param(b"\x80\x04\x96" + b"\xff" * 7 + b"\x00.", id="bytes longer than the file"),
        pytest.param(b"\x80\x04\x8b\xff\xff\xff\x7f.", id="integer longer than the file"),
        pytest.param(b"\x80\x04" + b"(" * 3_000_000, id="no end"),
        pytest.param(b"\x80\x04.", id="empty stack"),
        pytest.param(b"\x80\x04}]]s.", id="unhashable key"),
        pytest.param(b"\x80\x04\xff.", id="no such opcode"),
        pytest.param(b"\x80\x04h\x07.", id="memo never set"),
        pytest.param(b"\x80\x04", id="nothing"),
    ],
)
def test_damaged_and_hostile_pickles_are_refused(data):
    assert "not a readable pickle" in str(_refused(data))


def test_deep_nesting_is_refused_without_recursion():
    _refused(b"\x80\x04]" + b"]" * 200_000 + b"a" * 200_000 + b".")
    _refused(b"\x80\x04})" + b"\x85" * 10_000 + b"Ns.")  # as a key, which no message may show
    named = pickle.dumps({"device_traces": [[_event("alloc", 1, frames=[{"name": "DEEP"}])]]}, 4)
    nested = b"]" + b"]" * 10_000 + b"a" * 10_000
    deep = re.sub(rb"\x95.{8}", b"", named, flags=re.DOTALL).replace(b"\x8c\x04DEEP", nested)
    assert snapshot.read(deep, "x").table("stacks")["frames"].tolist() == ["?"]  # no name at all


@pytest.mark.parametrize(
    "content",
    [
        {"state_dict": {}}, {}, 3, "text", [1, 2], [{"a": 1}], {"segments": 3},
        {"segments": [{"blocks": 3}]}, {"segments": [], "device_traces": [3]},
        {"segments": [_segment([]) | {"blocks": [{"size": "large", "state": "inactive"}]}]},
        {"device_traces": [[{"action": "alloc", "addr": 2**70, "size": 1}]]},
    ],
)  # fmt: skip
def test_a_pickle_of_something_else_is_refused(content):
    assert "not a CUDA memory snapshot" in str(_refused(pickle.dumps(content)))


@pytest.mark.parametrize("size", [-1, -(2**63), 2**62, 2**63 - 1, 2**63])
@pytest.mark.parametrize("where", ["alloc", "oom", "block", "segment", "time"])
def test_sizes_and_times_that_no_device_has_are_refused(where, size):
    """Sums of them would wrap round and show as memory that was never there."""
    event = _event("oom" if where == "oom" else "alloc", 0x7000, size=512, time_us=5)
    block = {"address": 0, "size": 512, "state": "inactive"}
    segment = _segment([block])
    if where in ("alloc", "oom", "time"):
        event["time_us" if where == "time" else "size"] = size
    elif where == "block":
        block["size"] = size
    else:
        segment["total_size"] = size
    content = {"segments": [segment], "device_traces": [[event]]}
    assert "not a CUDA memory snapshot" in str(_refused(pickle.dumps(content)))


def test_a_snapshot_cut_anywhere_is_refused():
    name = "octree-nca/cuda_single_step.pickle"
    _corpus_only(name)
    data = _content(name)
    for cut in range(2, len(data) - 1, 997):
        _refused(data[:cut])


def test_every_protocol_gives_the_same_plain_data():
    content = {"segments": [], "numbers": [1.5, -3, 2**40, 2**80], "flags": (True, None, "ä" * 300)}
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        data = pickle.dumps(content, protocol)
        assert snapshot.sniff(data)
        assert plain_data(data, "x") == content


def test_torchs_compare_finds_the_same_segments_new_and_gone(loaded, capsys):
    """`_memory_viz.compare` of two dumps of one program prints the addresses."""
    viz = pytest.importorskip("torch.cuda._memory_viz")
    names = "octree-nca/my_snapshot_2.pickle", "octree-nca/my_snapshot_3.pickle"
    for name in names:
        _corpus_only(name)
    viz.compare(*(_plain(name)["segments"] for name in names), format_flamegraph=str)
    said = dict(re.findall(r"(only_\w+) = \[(.*)\]", capsys.readouterr().out))
    before, after = (
        set(loaded(name).table("segments")[["address", "size_bytes"]].itertuples(index=False))
        for name in names
    )
    for key, mine in (("only_before", before - after), ("only_after", after - before)):
        assert sorted(map(int, said[key].split(", "))) == sorted(row.address for row in mine)


def test_allocations_name_their_events():
    """By hand: freed at once, freed late, freed without having been seen, living at the end."""
    events = [
        _event("alloc", 0x1000), _event("free_requested", 0x1000), _event("free_completed", 0x1000),
        _event("alloc", 0x2000), _event("free_requested", 0x2000), _event("alloc", 0x1000),
        _event("free_completed", 0x2000), _event("free_completed", 0x3000),
    ]  # fmt: skip
    lives = _read([_segment([_block(512)])], [[], events]).table("allocations")
    at_end = _read([_segment([_block(512)], device=1)], [[], events]).table("allocations")
    columns = ["before_log", "alloc_event", "free_requested_event", "free_event"]
    told = at_end[columns].astype(object).where(at_end[columns].notna(), None).to_numpy().tolist()
    assert told == [
        [True, None, None, 7], [False, 0, 1, 2], [False, 3, 4, 6], [False, 5, None, None],
    ]  # fmt: skip
    assert lives["device"].tolist() == [1, 0, 1, 1, 1]  # device 0 has a block and no log
    assert lives.loc[lives["device"].eq(0), "before_log"].all()


def test_a_large_block_ends_at_the_border_beside_it():
    """It was cut from 20 MiB: the next block begins 3.5 MiB behind it, for a request of 3 MiB."""
    events = [
        _event("segment_alloc", 0x1000, 20 * MIB), _event("alloc", 0x1000, 3 * MIB),
        _event("alloc", 0x1000 + 7 * MIB // 2, 8 * MIB),
        _event("free_completed", 0x1000 + 7 * MIB // 2, 8 * MIB),
        _event("free_completed", 0x1000, 3 * MIB), _event("segment_free", 0x1000, 20 * MIB),
    ]  # fmt: skip
    lives = _read([_segment([_block(512)], device=1)], [events]).table("allocations")
    mine = lives[lives["device"].eq(0)]
    assert mine["size_bytes"].tolist() == [7 * MIB // 2, 8 * MIB]
    assert mine["requested_bytes"].tolist() == [3 * MIB, 8 * MIB]
