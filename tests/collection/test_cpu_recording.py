"""The shipped recording of the real CPU job is whole and tells nothing of its machine.

Right values: ``truth/cpu_job.json``, which torch.profiler wrote in the same run.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

JOB = Path(__file__).resolve().parents[2] / "sample_traces" / "cpu_job"
TRACE = JOB / "recording" / "rank0.pt.trace.json.gz"


@pytest.fixture(scope="module")
def text():
    return gzip.decompress(TRACE.read_bytes()).decode()


@pytest.fixture(scope="module")
def events(text):
    return json.loads(text)["traceEvents"]


def parents(events):
    """Every range with the one it lies in, thread by thread."""
    lanes = defaultdict(list)
    for event in events:
        if event.get("cat") in ("cpu_op", "user_annotation", "python_function"):
            lanes[event["tid"]].append(event)
    for lane in lanes.values():
        lane.sort(key=lambda event: (event["ts"], -event["dur"]))
        above = []
        for event in lane:
            while above and above[-1]["ts"] + above[-1]["dur"] < event["ts"] + event["dur"]:
                above.pop()
            yield event, above[-1] if above else None
            above.append(event)


def test_calls_are_those_of_key_averages(events):
    """key_averages() takes an only child of its own name together with its parent."""
    known = json.loads((JOB.parent / "truth" / "cpu_job.json").read_text())
    pairs = list(parents(events))
    children = Counter(id(parent) for _, parent in pairs)
    found = Counter(
        re.sub(r"^ProfilerStep#.*", "ProfilerStep*", event["name"])
        for event, parent in pairs
        if event["cat"] != "python_function"
        and not (parent and parent["name"] == event["name"] and children[id(parent)] == 1)
    )
    assert found == {name: row["calls"] for name, row in known.items()}


def test_whole_steps_with_the_reads_of_sub_datasets_in_them(events):
    steps = [e for e in events if e["name"].startswith("ProfilerStep#")]
    reads = [e for e in events if e["name"].endswith("): read_sub_dataset")]
    assert len(steps) == 30
    assert len(reads) == 3
    ranges = [e for e in events if e["name"] == "Optimizer.step#AdamW.step"]
    for event in ranges:
        assert any(
            step["ts"] <= event["ts"] and event["ts"] + event["dur"] <= step["ts"] + step["dur"]
            for step in steps
        )


def test_the_job_is_not_modified():
    source = (JOB / "train.py").read_text()
    assert "profile" not in source
    assert "def sharded_iterrows(" in source
    assert "num_worker_threads" in source


def test_small_and_without_places_of_its_machine(text):
    assert TRACE.stat().st_size <= 3_000_000
    names = re.findall(r'"name": "([^"]*)"', text)
    assert names
    assert not [name for name in names if name.startswith("/")]
    assert not re.search(r"/(home|root|usr|opt|tmp|work|site-packages)\b", text)
