"""No event of a file is dropped silently, and none stands in two tables.

Right values: the number of events each test writes itself, or that Python's own json module
counts in a file of the corpus.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from maiprof_nb.loading import kineto, lookalikes, sources
from maiprof_nb.recording import Recording
from tests.conftest import CORPUS
from tests.loading.generated_traces import EVENTS, LAYOUTS, NESTED, ODD_EVENTS, written

SECOND_VIEW = {"steps"}  # its rows are rows of `annotations` too

bounded = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def places(recording: Recording) -> pd.Series[Any]:
    """The table of every event, one entry for each table that has it."""
    found = {
        name: table["event"].unique()
        for name, table in recording.tables.items()
        if "event" in table and name not in SECOND_VIEW
    }
    at = np.concatenate([np.empty(0, np.int64), *found.values()])
    return pd.Series(np.repeat(list(found), [len(events) for events in found.values()]), at)


def lost(recording: Recording) -> int:
    """Events noted as lost; a file may also be cut between two of them, where none is."""
    return sum(
        note.count
        for note in recording.notes
        if note.code == "event-lost" or (note.code == "cut" and "lost" in note.text)
    )


def check(recording: Recording, expected: int) -> None:
    kept = sum(recording.events.values())
    where = places(recording)
    assert where.index.is_unique, where[where.index.duplicated(keep=False)].to_dict()
    assert sorted(where.index) == list(range(kept))
    assert kept + lost(recording) == expected
    steps = recording.table("steps")["event"]
    assert set(steps) <= set(where.index[where == "annotations"])


@bounded
@given(events=st.lists(EVENTS, max_size=12), layout=st.sampled_from(LAYOUTS))
@example(events=[], layout="object")
@example(events=[{}], layout="list")
@example(events=[{"ph": "C", "ts": 1, "args": {"a": 1, "b": 2}}], layout="object")
@example(events=[{"ph": "C", "ts": 1, "args": {"a": 10**400}}], layout="object")
@example(events=[{"ph": "X", "cat": "kernel", "ts": 10**400, "dur": 1}], layout="object")
def test_well_formed(events: list[dict[str, Any]], layout: str) -> None:
    check(kineto.read(written(events, layout), "x"), len(events))


@bounded
@given(events=st.lists(ODD_EVENTS, max_size=6), layout=st.sampled_from(LAYOUTS))
@example(events=[{"ph": ["X"]}, {"ph": "X", "args": {"a": 10**400}}], layout="object")
@example(events=[{"ph": ["X"]}, {"ph": "X", "name": "\ud800"}], layout="object")
@example(events=[{"ph": {}}, {"ph": "X", "args": {"\udc00": "\ud800"}}], layout="list")
@example(events=[{"ts": {}}, {"ph": "X", "ts": 2**70, "dur": -(2**70)}], layout="list")
def test_fields_of_the_wrong_kind(events: list[dict[str, Any]], layout: str) -> None:
    check(kineto.read(written(events, layout), "x"), len(events))


@bounded
@given(events=st.lists(st.one_of(EVENTS, NESTED), max_size=6), layout=st.sampled_from(LAYOUTS))
@example(events=[None], layout="object")
@example(events=[{"ph": "X"}, [{"ph": "X"}], 3], layout="list")
def test_what_is_no_event_is_noted(events: list[Any], layout: str) -> None:
    check(kineto.read(written(events, layout), "x"), len(events))


@bounded
@given(events=st.lists(EVENTS, min_size=1, max_size=6), share=st.floats(0, 1))
def test_cut_files(events: list[dict[str, Any]], share: float) -> None:
    data = written(events, "object")
    opening = data.index(b"[", data.index(b'"traceEvents"')) + 1
    last = data.rindex(b"]")
    at = opening + round(share * (last - opening))
    recording = kineto.read(data[:at], "x")
    kept = sum(recording.events.values())
    where = places(recording)
    assert sorted(where.index) == list(range(kept))
    assert "cut" in {note.code for note in recording.notes}
    # All events that are whole: those whose closing bracket stands before the cut.
    whole = sum(
        len(json.dumps(events[: n + 1])) - 1 <= at - opening + 1 for n in range(len(events))
    )
    assert kept == whole


def traces() -> list[Path]:
    if not CORPUS.is_dir():
        return []
    return sorted(p for p in CORPUS.rglob("*json*") if p.is_file() and p.stat().st_size < 4e5)


@pytest.mark.parametrize("path", traces(), ids=lambda path: str(path.relative_to(CORPUS)))
def test_corpus(path: Path) -> None:
    data = sources.content(str(path))[0]
    if lookalikes.reason(data) or not kineto.sniff(data):
        pytest.skip("no trace")
    recording = kineto.read(data, str(path))
    try:
        found = json.loads(data.decode("utf-8-sig"))
    except ValueError:  # damaged: what it should hold is unknown, but not what was read
        check(recording, sum(recording.events.values()) + lost(recording))
        return
    check(recording, len(found if isinstance(found, list) else found["traceEvents"]))
