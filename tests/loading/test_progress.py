"""Progress of a load, and the way to stop it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import maiprof_nb
from maiprof_nb.loading import _chrome_json, ahead, registry


class StoppedError(Exception):
    """What a listener raises to stop a load."""


@pytest.fixture
def many_parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A trace that is read in many parts."""
    monkeypatch.setenv("MAIPROF_CACHE", "off")
    monkeypatch.setattr(_chrome_json, "PART_BYTES", 1000)
    file = tmp_path / "trace.json"
    events = [{"ph": "X", "name": "op", "ts": i, "dur": 1, "args": {"i": i}} for i in range(500)]
    file.write_text(json.dumps({"traceEvents": events}))
    return file


def test_it_rises_to_one(many_parts: Path) -> None:
    seen: list[float] = []
    maiprof_nb.load(many_parts, report=seen.append)
    assert len(seen) > 10
    assert seen == sorted(seen)
    assert seen[-1] == pytest.approx(1, abs=0.02)


def test_parts_are_as_good_as_the_whole(many_parts: Path) -> None:
    (recording,) = maiprof_nb.load(many_parts).recordings
    other = recording.table("other_events")
    assert list(other["event"]) == list(range(500))
    assert list(other["ts_ns"]) == [i * 1000 for i in range(500)]
    assert [recording.args(i) for i in (0, 250, 499)] == [{"i": 0}, {"i": 250}, {"i": 499}]


def test_objects_inside_args_that_look_like_events_are_no_cut(
    many_parts: Path, tmp_path: Path
) -> None:
    inner = [{"ph": "not an event", "x": i} for i in range(40)]
    events = [{"ph": "X", "name": "op", "ts": i, "dur": 1, "args": {"l": inner}} for i in range(9)]
    file = tmp_path / "nested.json"
    file.write_text(json.dumps(events))
    (recording,) = maiprof_nb.load(file).recordings
    assert recording.events == {"X/": 9}
    assert recording.args(8) == {"l": inner}


def test_a_listener_that_raises_stops_the_load(many_parts: Path) -> None:
    def stop(share: float) -> None:
        if share > 0.3:
            raise StoppedError

    with pytest.raises(StoppedError):
        maiprof_nb.load(many_parts, report=stop)


def test_several_files_share_the_way(many_parts: Path) -> None:
    seen: list[float] = []
    copy = many_parts.with_name("rank1.json")
    copy.write_bytes(many_parts.read_bytes())
    maiprof_nb.load([many_parts, copy], report=seen.append)
    assert any(0.3 < share < 0.5 for share in seen)
    assert any(0.6 < share < 0.9 for share in seen)


def test_big_files_are_read_by_processes_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAIPROF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(ahead, "WORTH_BYTES", 0)
    folder = tmp_path / "ranks"
    folder.mkdir()
    for rank in range(2):
        filler = "x" * 100
        events = [
            {"ph": "X", "cat": "cpu_op", "name": "op", "ts": i, "dur": 1, "args": {"f": filler}}
            for i in range(30_000)
        ]
        (folder / f"rank{rank}.json").write_text(json.dumps(events))
    read_here: list[str] = []
    monkeypatch.setattr(registry, "read", lambda _data, source: read_here.append(source))
    session = maiprof_nb.load(folder)
    assert read_here == []  # all of it came out of the cache
    assert session.ranks == [0, 1]
    assert len(session.table("operators")) == 60_000
