"""Files made to harm: each ends in a clear error or a bounded load, and quickly.

Right values: what each file was built to do, and what its size allows.
"""

from __future__ import annotations

import json
import pickle
import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from maiprof_nb.errors import LoadError
from maiprof_nb.loading import kineto, registry, snapshot
from maiprof_nb.loading.unpickling import plain_data

SOON_S = 20.0  # each takes a second or less on an idle machine; what is quadratic takes minutes
EVENT = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 0, "dur": 1}


@pytest.fixture(autouse=True)
def soon() -> Iterator[None]:
    began = time.perf_counter()
    yield
    assert time.perf_counter() - began < SOON_S


def trace(*events: str) -> bytes:
    return f'{{"traceEvents": [{",".join(events)}]}}'.encode()


def event(**more: Any) -> str:
    return json.dumps(EVENT | more)


def codes(recording: Any) -> set[str]:
    return {note.code for note in recording.notes}


# Tuples in tuples, made by opcodes: nested, remembered, beside numbers, and doubled (which is
# hashed 2**depth times).
NESTED = (b"\x85", b"\x94\x85", b"K\x01\x86", b"JK\x00K\x00\x86", b"2\x86", b"K\x01K\x02\x87")


@pytest.mark.parametrize("level", NESTED)
@pytest.mark.parametrize(
    "around",
    [(b"}", b"Ns."), (b"}(", b"Nu."), (b"(", b"Nd."), (b"\x8f(", b"\x90."), (b"(", b"\x91.")],
)
def test_nested_tuples_are_never_hashed(level: bytes, around: tuple[bytes, bytes]) -> None:
    before, after = around
    data = b"\x80\x04" + before + b")" + level * 20_000 + after
    with pytest.raises(LoadError, match="is not a readable pickle"):
        plain_data(data, "x")


def test_a_wide_tuple_of_wide_tuples_is_never_hashed() -> None:
    wide = b"\x94(" + b"h\x00" * 1_000 + b"t"  # one tuple a thousand times
    data = b"\x80\x04})" + wide + b"\x94(" + b"h\x01" * 1_000 + b"t" + b"\x94(" + b"h\x02" * 1_000
    with pytest.raises(LoadError):
        plain_data(data + b"tNs.", "x")


def test_nested_tuples_as_values_are_plain_data() -> None:
    content = {"a": ((1, ("x",)), [({"b": (2.5, None)},)]), "n": 2**80}
    assert plain_data(pickle.dumps(content, 4), "x") == content


def test_odd_values_do_not_open_the_door() -> None:
    with pytest.raises(LoadError, match=r"asks for os\.system"):
        plain_data(b"\x80\x04)\x85\x85\x8c\x02os\x8c\x06system\x93)R.", "x")


def test_keys_that_collide_are_refused() -> None:
    keys = {n * (2**61 - 1): 0 for n in range(20, 2_000)}
    with pytest.raises(LoadError, match="a key is of type int or out of range"):
        plain_data(pickle.dumps(keys, 4), "x")


def test_one_list_in_many_places_is_no_snapshot() -> None:
    row = {"action": "alloc", "addr": 1, "size": 512, "stream": 0, "time_us": 1}
    data = pickle.dumps({"segments": [], "device_traces": [[row] * 5_000] * 5_000}, 4)
    with pytest.raises(LoadError, match="multiplies itself to 25,000,000 rows"):
        snapshot.read(data, "x")


def test_a_name_without_end_is_no_name() -> None:
    laugh: Any = "lol"
    for _ in range(12):
        laugh = [laugh] * 10  # as text it would fill 10**12 bytes
    row = {"action": "alloc", "addr": 1, "size": 512, "stream": 0, "time_us": 1}
    frames = [{"name": laugh, "filename": laugh, "line": laugh}]
    block = {"size": 512, "state": laugh, "address": 0}
    segment = {"address": 0, "total_size": 512, "segment_type": laugh, "segment_pool_id": laugh,
               "blocks": [block]}  # fmt: skip
    ranges = [{"stage": "START", "name": laugh, "device": laugh, "time_us": 1}]
    content = {
        "segments": [segment],
        "device_traces": [[row | {"frames": frames}]],
        "external_annotations": ranges,
    }
    recording = snapshot.read(pickle.dumps(content, 4), "x")
    assert len(recording.table("stacks")["frames"][0]) < 10


@pytest.mark.parametrize(
    "inside",
    [
        "[" * 100_000 + "]" * 100_000,
        '{"a":' * 100_000 + "1" + "}" * 100_000,
        "[" * 1_000_000,
        "9" * 1_000_000,
        '"' + "\\" * 1_000_001 + '"',
        '"' + '\\"' * 200_000,
    ],
    ids=["lists", "objects", "open lists", "digits", "backslashes", "quotes"],
)
def test_depth_and_length_of_details_cost_that_event_only(inside: str) -> None:
    recording = kineto.read(trace(event()[:-1] + f', "args": {inside}}}', event()), "x")
    assert sum(recording.events.values()) == 1
    assert codes(recording) & {"event-lost", "cut"}


@pytest.mark.parametrize(
    "piece",
    [
        '{"ph":"X","name":"a"b","ts":1},',
        '{"ph":"X","name":"a ,',
        '{"ph":"X","args":[1,2,3,',
        '[{"ph":',
    ],
    ids=["quotes", "open texts", "open lists", "nested"],
)
def test_many_broken_events_take_linear_time(piece: str) -> None:
    recording = kineto.read(trace(piece * 30_000), "x")
    assert codes(recording) & {"event-lost", "cut"}


def test_metadata_may_be_deep() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    data = f'{{"a": {deep}, "traceEvents": [{event()}]}}'.encode()
    assert sum(kineto.read(data, "x").events.values()) == 1


@pytest.mark.parametrize("number", ["1e308", "-1e300", str(2**70), "1e-320", "-0.0", "9" * 400])
@pytest.mark.parametrize("key", ["ts", "dur", "pid", "tid", "id"])
def test_absurd_numbers(key: str, number: str) -> None:
    odd = event()[:-1] + f', "{key}": {number}}}'  # the later of two keys counts
    recording = kineto.read(trace(event(), odd), "x")
    assert sum(recording.events.values()) == 2
    operators = recording.table("operators")
    assert operators["ts_ns"].iloc[0] == 0
    assert operators["dur_ns"].iloc[0] == 1_000


@pytest.mark.parametrize("key", ["name", "tid", "cat"])
def test_every_event_with_a_name_of_its_own(key: str) -> None:
    """No more memory than some times the file: no table of names times threads or the like."""
    data = trace(*(event(**{key: f"{key} {n}", "ts": n}) for n in range(50_000)))
    tracemalloc.start()
    recording = kineto.read(data, "x")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(recording.events.values()) == 50_000
    assert peak < 12 * len(data)


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "\x1b[2J\x1b[31m", "a\u202eb", "\0"])
def test_names_are_kept_as_they_are(name: str) -> None:
    """Whoever shows them escapes them; here they stay what the file says."""
    recording = registry.read(trace(event(name=name)), "x")
    assert recording.table("operators")["name"].tolist() == [name]
