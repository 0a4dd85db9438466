"""Files other tools could not open or drew wrongly."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

import maiprof_nb
from maiprof_nb.analysis import memory_curve
from maiprof_nb.findings.diagnosis import diagnose
from maiprof_widgets.views.memory import MemoryView
from tests.tiny_traces import operator


def test_control_characters_in_names_pytorch_130622(tmp_path: Path) -> None:
    """pytorch#130622: one raw control character made a 300 MB file unreadable everywhere."""
    file = tmp_path / "trace.json"
    events = json.dumps([operator("before", 1, 2), operator("odd", 4, 2), operator("after", 8, 2)])
    file.write_bytes(events.encode().replace(b"odd", b"o\x01\x1bd\x02d"))
    (recording,) = maiprof_nb.load(file).recordings
    assert recording.table("operators")["name"].tolist() == ["before", "o\x01\x1bd\x02d", "after"]
    assert {note.code for note in recording.notes} >= {"control-characters"}


def test_a_bare_list_is_a_trace_kineto_728(tmp_path: Path) -> None:
    """kineto#728, pytorch#95460: the legacy layout is a list and no object."""
    file = tmp_path / "trace.json.gz"
    file.write_bytes(gzip.compress(json.dumps([operator("op", 1, 2)]).encode()))
    assert len(maiprof_nb.load(file).table("operators")) == 1


@pytest.mark.parametrize(
    "odd",
    [
        {"ph": "X", "name": "no cat", "ts": 1, "dur": 1},
        {"ph": "X", "cat": "Trace", "name": "span", "ts": 1, "dur": 1, "pid": "Spans", "tid": "x"},
        {"ph": "X", "cat": "kernel", "name": "no args", "ts": 1, "dur": 1},
        {"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1, "args": {"stream": "7a"}},
        {"ph": "X", "cat": "cpu_op", "name": None, "ts": 1, "dur": 1, "args": None},
        {"ph": "?", "cat": "unheard of", "name": "new", "ts": 1},
        {"ph": "i", "name": "[memory]", "ts": 1, "args": {"Bytes": "many"}},
    ],
)
def test_no_event_is_an_unexpected_case_hta_254(odd: dict[str, Any], tmp_path: Path) -> None:
    """HTA#254: "Unexpected case" while parsing ended the whole load."""
    file = tmp_path / "trace.json"
    file.write_text(json.dumps({"traceEvents": [odd, operator("good", 5, 1)]}))
    (recording,) = maiprof_nb.load(file).recordings
    assert recording.table("operators")["name"].tolist()[-1] == "good"
    assert sum(recording.events.values()) == 2


def snapshot(**more: Any) -> dict[str, Any]:
    """One live block of 1 MiB in a segment of 2 MiB, and its alloc in the log."""
    block = {"address": 4096, "size": 2**20, "requested_size": 2**20, "state": "active_allocated"}
    rest = {"address": 4096 + 2**20, "size": 2**20, "requested_size": 0, "state": "inactive"}
    segment = {
        "device": 0, "address": 4096, "total_size": 2**21, "allocated_size": 2**20,
        "active_size": 2**20, "requested_size": 2**20, "stream": 0, "segment_type": "small",
        "segment_pool_id": (0, 0), "is_expandable": False, "frames": [],
        "blocks": [{**block, "frames": []}, {**rest, "frames": []}],
    }  # fmt: skip
    event = {"action": "alloc", "addr": 4096, "size": 2**20, "stream": 0, "time_us": 10**15}
    return {"segments": [segment], "device_traces": [[event]], **more}


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_every_pickle_protocol_opens_torchtitan_3375(protocol: int, tmp_path: Path) -> None:
    """torchtitan#3375: protocol 5 gave a blank page."""
    file = tmp_path / "memory.pickle"
    file.write_bytes(pickle.dumps(snapshot(), protocol=protocol))
    (recording,) = maiprof_nb.load(file).recordings
    assert recording.table("allocations")["size_bytes"].tolist() == [2**20]


def test_fields_nobody_knows_yet_do_no_harm_mosaic_5(tmp_path: Path) -> None:
    """mosaic#5, #15: a new field of the snapshot crashed the loader."""
    made = snapshot(tomorrow={"a": [1, 2]})
    made["segments"][0]["tomorrow"] = 1
    made["segments"][0]["blocks"][0]["tomorrow"] = "x"
    made["device_traces"][0][0]["tomorrow"] = None
    file = tmp_path / "memory.pickle"
    file.write_bytes(pickle.dumps(made))
    (recording,) = maiprof_nb.load(file).recordings
    assert len(recording.table("blocks")) == 2


def test_no_more_is_drawn_than_the_card_had_pytorch_158364(tmp_path: Path) -> None:
    """pytorch#158364: 110 GB on an 80 GB card, as frees of blocks from before the log were lost.

    Here the log begins with the free of 3 MiB it never saw allocated, then allocates 1 MiB:
    3 MiB before, never 4.
    """
    made = snapshot()
    free = {"action": "free_completed", "addr": 2**30, "size": 3 * 2**20, "stream": 0}
    made["device_traces"][0].insert(0, {**free, "time_us": 10**15 - 5})
    file = tmp_path / "memory.pickle"
    file.write_bytes(pickle.dumps(made))
    session = maiprof_nb.load(file)
    curve = memory_curve(session)["allocated_bytes"]
    assert curve.max() == 3 * 2**20
    assert curve.iloc[-1] == 2**20
    assert {note.code for _, note in session.notes} >= {"log-begins-late"}


def test_an_empty_snapshot_says_so_everywhere_megatron_bridge_3487(tmp_path: Path) -> None:
    """Megatron-Bridge#3487, VeOmni#350: a dump of nothing was noticed long after the run."""
    file = tmp_path / "memory.pickle"
    file.write_bytes(pickle.dumps({"segments": [], "device_traces": [[]]}))
    session = maiprof_nb.load(file)
    assert {note.code for _, note in session.notes} == {"snapshot-empty"}
    rules = ["oom", "memory-leak", "fragmentation", "late-snapshot", "over-reservation"]
    for found in diagnose(session, rules=rules):
        assert "snapshot is empty: recording was not on" in found.reason
    assert "snapshot is empty" in MemoryView(session).about["empty"]["sentence"]


def test_a_ring_that_overflowed_is_told_pytorch_179276(tmp_path: Path) -> None:
    """A pull request of PyTorch (179276): the picture began in the middle, and nothing said so.

    10 000 entries, as the ring was set: frees of three blocks of 4 MiB that it never saw made,
    then blocks of 1 MiB one after the other.
    """
    made = snapshot()
    one = {"stream": 0, "time_us": 10**15 - 20_000}
    frees = {"action": "free_completed", "size": 4 * 2**20}
    log = [one | frees | {"addr": 2**30 + turn * 2**23} for turn in range(3)]
    block = one | {"addr": 2**31, "size": 2**20}
    turn = [block | {"action": name} for name in ("alloc", "free_requested", "free_completed")]
    log += turn * 3332
    made["device_traces"][0] = log + made["device_traces"][0]
    assert len(made["device_traces"][0]) == 10_000
    file = tmp_path / "memory.pickle"
    file.write_bytes(pickle.dumps(made))
    session = maiprof_nb.load(file)
    (found,) = diagnose(session, rules=["late-snapshot"])
    assert "its ring of 10 000 entries was full" in found.title.replace(
        "\N{NARROW NO-BREAK SPACE}", " "
    )
    assert memory_curve(session)["allocated_bytes"].iloc[0] == 12 * 2**20
    (notice,) = MemoryView(session).about["notices"]
    assert notice.startswith("The log begins with 12.0 MiB already allocated")
