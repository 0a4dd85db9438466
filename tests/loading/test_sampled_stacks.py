"""Stacks from py-spy and other samplers: speedscope, collapsed, py-spy's Chrome trace.

The files are made by hand in the layouts of speedscope's published schema and of py-spy 0.4.3.
"""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pytest

from maiprof_nb.analysis.gap_causes import gap_causes
from maiprof_nb.analysis.icicle import icicle
from maiprof_nb.analysis.python_in_gaps import functions_in_gaps
from maiprof_nb.errors import LoadError
from maiprof_nb.loading import registry
from maiprof_nb.recording import Recording
from maiprof_nb.session import Session
from tests import tiny_traces as tiny

MS = 1_000_000
SCHEMA = "https://www.speedscope.app/file-format-schema.json"
FRAMES = [
    {"name": "main", "file": "train.py", "line": 9},
    {"name": "load", "file": "data.py", "line": 3},
    {"name": "step", "file": "train.py", "line": 5},
]


def speedscope(profiles: list[dict[str, Any]], **more: Any) -> bytes:
    head = {"$schema": SCHEMA, "profiles": profiles, "shared": {"frames": FRAMES}}
    return json.dumps(head | {"exporter": "py-spy@0.4.3"} | more).encode()


def sampled(samples: list[list[int]], weights: list[float], unit: str = "seconds") -> bytes:
    profile = {
        "type": "sampled", "name": 'Thread 77 "MainThread"', "unit": unit,
        "startValue": 0.0, "endValue": sum(weights), "samples": samples, "weights": weights,
    }  # fmt: skip
    return speedscope([profile])


def calls(recording: Recording) -> list[tuple[str, float, float]]:
    found = recording.table("python_calls")
    return [(row.name_, row.ts_ns / MS, row.dur_ns / MS) for row in _rows(found)]


def _rows(found: pd.DataFrame) -> Any:
    return found.rename(columns={"name": "name_"}).astype({"name_": "str"}).itertuples()


def test_samples_that_follow_one_another_are_one_call() -> None:
    data = sampled([[0, 1], [0, 1], [0, 2], [], [0, 1]], [0.01] * 5)
    found = registry.read(data, "a.json")
    assert (found.kind, found.format) == ("stacks", "speedscope")
    assert calls(found) == [
        ("train.py(9): main", 0, 30),
        ("data.py(3): load", 0, 20),
        ("train.py(5): step", 20, 10),
        ("train.py(9): main", 40, 10),
        ("data.py(3): load", 40, 10),
    ]
    assert found.table("python_calls")["tid"].unique().tolist() == ["77 MainThread"]
    assert [note.code for note in found.notes] == ["stacks-sampled"]
    assert found.clock.epoch_ns is None


def test_events_of_a_profile_have_true_times() -> None:
    events = [
        {"type": "O", "at": 1, "frame": 0}, {"type": "O", "at": 2, "frame": 1},
        {"type": "C", "at": 4, "frame": 1}, {"type": "C", "at": 9, "frame": 0},
    ]  # fmt: skip
    profile = {"type": "evented", "name": "x", "unit": "milliseconds", "events": events}
    found = registry.read(speedscope([profile]), "a.json")
    assert calls(found) == [("train.py(9): main", 1, 8), ("data.py(3): load", 2, 2)]
    assert found.notes == ()


def test_a_profile_that_only_counts_has_no_times() -> None:
    found = registry.read(sampled([[0], [0, 1]], [3, 2], unit="none"), "a.json")
    assert calls(found)[0] == ("train.py(9): main", 0, 50)  # 5 samples of 10 ms
    assert found.meta["without_times"]
    assert found.notes[0].code == "stacks-without-times"


RAW = b"""thread (31): MainThread;main (train.py:9);load (data.py:3) 28
thread (31): MainThread;main (train.py:9);step (train.py:5) 2
thread (44): loader;<module> (<string>:1) 7
"""


def test_collapsed_stacks_are_counts() -> None:
    found = registry.read(RAW, "a.txt")
    assert found.format == "collapsed-stacks"
    assert found.meta["without_times"]
    tree = icicle(Session([found]), gaps_only=False).nodes.set_index("name")["total_ns"] / MS
    assert tree["data.py(3): load"] == 280
    assert tree["train.py(5): step"] == 20
    assert tree["<string>(1): <module>"] == 70
    assert tree["train.py(9): main"] == 300


def event(phase: str, name: str, ts: float, tid: int = 5) -> dict[str, Any]:
    args = {"filename": f"{name}.py", "line": 1}
    return {
        "ph": phase,
        "cat": "py-spy",
        "name": name,
        "ts": ts,
        "pid": 1,
        "tid": tid,
        "args": args,
    }


def test_pyspys_chrome_trace_has_true_times() -> None:
    """Frames that begin at one moment are written outermost first."""
    events = [
        event("B", "main", 1000), event("B", "load", 1000), event("E", "load", 3000),
        event("B", "step", 5000), event("E", "step", 6000), event("E", "main", 6000),
        event("B", "open", 7000), event("E", "never", 8000),
    ]  # fmt: skip
    found = registry.read(json.dumps(events, separators=(",", ":")).encode(), "a.json")
    assert found.format == "pyspy-chrometrace"
    assert calls(found) == [
        ("main.py(1): main", 1, 5), ("load.py(1): load", 1, 2), ("step.py(1): step", 5, 1),
        ("open.py(1): open", 7, 1),
    ]  # fmt: skip
    assert [(note.code, note.count) for note in found.notes] == [("frames-unmatched", 2)]


def test_callers_lie_round_what_lasts_as_long() -> None:
    found = Session([registry.read(sampled([[0, 1]], [0.01]), "a.json")])
    nodes = icicle(found, gaps_only=False).nodes
    assert nodes["name"].tolist() == ["sampled threads", "train.py(9): main", "data.py(3): load"]
    assert nodes["self_ns"].tolist() == [0, 0, 10 * MS]


def job(*more: tiny.Event) -> Recording:
    """A trace with a gap of 80 us from 20 us on, without Python calls but those given."""
    return tiny.recording(
        tiny.operator("aten::mm", 1000, 100),
        tiny.launch(1, 1001), tiny.launch(2, 1098),
        tiny.kernel(1010, 10, correlation=1), tiny.kernel(1100, 10, correlation=2), *more,
    )  # fmt: skip


def stacks() -> Recording:
    return registry.read(sampled([[0, 1], [0, 2]], [40, 60], unit="microseconds"), "a.json")


def test_sampled_stacks_count_in_gaps_once_they_are_placed() -> None:
    apart = Session([job(), stacks()])
    assert "python" not in set(functions_in_gaps(apart)["kind"])
    placed = apart.placed({1: 0})
    found = functions_in_gaps(placed).set_index("name")["self_in_gaps_ns"] / 1000
    assert found["data.py(3): load"] == 20  # 0 to 40 us, the gap begins at 20
    assert found["train.py(5): step"] == 60  # 40 to 100 us


def test_a_gap_has_cause_and_line_of_the_sampled_thread() -> None:
    """The gap is from 19 to 99 us of the axis, its last 2 a launch; 40 us of load, then step."""
    trace = tiny.recording(
        tiny.launch(1, 1001), tiny.launch(2, 1098),
        tiny.kernel(1010, 10, correlation=1), tiny.kernel(1100, 10, correlation=2),
    )  # fmt: skip
    (gap,) = gap_causes(Session([trace, stacks()]).placed({1: 0})).to_dict("records")
    assert (gap["cause"], gap["user_line"]) == ("Python", "train.py(5): step")
    assert (gap["Python_ns"], gap["launch_bound_ns"], gap["unrecorded_ns"]) == (78_000, 2_000, 0)


def test_of_several_sampled_threads_the_main_one_answers() -> None:
    profiles = [
        {
            "type": "sampled", "name": name, "unit": "microseconds",
            "startValue": 0, "endValue": 100, "samples": [frames], "weights": [100],
        }
        for name, frames in (('Thread 7 "MainThread"', [0, 1]), ('Thread 8 "worker"', [2]))
    ]  # fmt: skip
    trace = tiny.recording(
        tiny.launch(1, 1001), tiny.launch(2, 1098),
        tiny.kernel(1010, 10, correlation=1), tiny.kernel(1100, 10, correlation=2),
    )  # fmt: skip
    both = registry.read(speedscope(profiles), "a.json")
    (gap,) = gap_causes(Session([trace, both]).placed({1: 0})).to_dict("records")
    assert gap["user_line"] == "data.py(3): load"
    unclear = registry.read(speedscope([profiles[1], profiles[1] | {"name": "Thread 9"}]), "a.json")
    (gap,) = gap_causes(Session([trace, unclear]).placed({1: 0})).to_dict("records")
    assert gap["cause"] == "unrecorded"


def test_a_trace_with_python_calls_of_its_own_goes_first() -> None:
    placed = Session([job(tiny.python("own.py(1): f", 1000, 100)), stacks()]).placed({1: 0})
    found = functions_in_gaps(placed)
    assert found[found["kind"] == "python"]["name"].tolist() == ["own.py(1): f"]


def test_counts_say_nothing_of_gaps() -> None:
    placed = Session([job(), registry.read(RAW, "a.txt")]).placed({1: 0})
    assert "python" not in set(functions_in_gaps(placed)["kind"])


@pytest.mark.parametrize(
    "data",
    [
        speedscope([]),
        speedscope([{"type": "sampled", "name": "x", "unit": "seconds"}]),
        sampled([[99]], [1]),
        sampled([[0]], [float("nan")]),
        sampled([[0], [0]], [1]),
        speedscope([{}])[:-20],
        b'[{"cat":"py-spy","ph":"B","name":"a","ts":1',
        b'[{"cat":"py-spy","ph":"M","name":"a"}]',
    ],
)
def test_damage_is_said(data: bytes) -> None:
    with pytest.raises(LoadError) as caught:
        registry.read(data, "a.json")
    assert caught.value.where == "a.json"
    assert caught.value.remedy


def test_deep_stacks_are_cut() -> None:
    found = registry.read(sampled([[0] * 5000], [0.01]), "a.json")
    assert len(found.table("python_calls")) == 1000
    assert "stacks-cut" in {note.code for note in found.notes}


@pytest.mark.parametrize(
    "text",
    [
        b"plain text 12\nmore of it 3\n",
        b"a;b;c\n",
        b"x,y 1\n1,2 3\n",
        b"log; of (things) 4x\n",
    ],
)
def test_text_of_other_makes_is_no_stack(text: bytes) -> None:
    with pytest.raises(LoadError) as caught:
        registry.read(text, "a.txt")
    assert "stacks" not in caught.value.problem
