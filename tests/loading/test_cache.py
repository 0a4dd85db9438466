"""The cache gives back what was read, at once, and never stands in the way."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import maiprof_nb
from maiprof_nb.loading import cache, registry

SAMPLE = Path(__file__).parents[2] / "sample_traces" / "case_study" / "before"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache for this test."""
    monkeypatch.setenv("MAIPROF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "MIN_BYTES", 0)
    return tmp_path / "cache"


@pytest.fixture
def never_parse(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From its call on, reading a file anew fails the test."""

    def refuse(_data: bytes, source: str) -> None:
        pytest.fail(f"{source} was parsed again")

    return lambda: monkeypatch.setattr(registry, "read", refuse)


def entries(place: Path) -> list[Path]:
    return [found.parent for found in place.glob("*/entries/*/recording.json")]


@pytest.mark.parametrize(
    "name", ["rank0.pt.trace.json.gz", "memory.pickle.gz", "gpu.csv", "dcgm.prom"]
)
def test_second_open_is_the_same_without_parsing(
    name: str, place: Path, never_parse: Callable[[], None]
) -> None:
    (first,) = maiprof_nb.load(SAMPLE / name).recordings
    never_parse()
    (again,) = maiprof_nb.load(SAMPLE / name).recordings
    assert list(again.tables) == list(first.tables)
    for table, frame in first.tables.items():
        pd.testing.assert_frame_equal(frame, again.tables[table], check_categorical=False)
    assert (again.kind, again.format, again.rank) == (first.kind, first.format, first.rank)
    assert (again.clock, again.notes, again.span) == (first.clock, first.notes, first.span)
    assert dict(again.events) == dict(first.events)
    assert again.simulated == first.simulated
    event = int(first.span.start_ns == 0)
    assert again.args(event) == first.args(event)


def test_a_renamed_copy_finds_the_content_and_its_own_rank(
    place: Path, tmp_path: Path, never_parse: Callable[[], None]
) -> None:
    events = [{"ph": "X", "cat": "cpu_op", "name": "op", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]
    first = tmp_path / "rank3.json"
    first.write_text(json.dumps({"traceEvents": events}))
    assert maiprof_nb.load(first).ranks == [3]
    copy = tmp_path / "rank_7.json"
    shutil.copy(first, copy)
    never_parse()
    assert maiprof_nb.load(copy).ranks == [7]


def test_a_changed_file_is_read_again(place: Path, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    for count in (1, 2):
        events = [{"ph": "X", "name": "op", "ts": i, "dur": 1} for i in range(count)]
        file.write_text(json.dumps(events))
        (recording,) = maiprof_nb.load(file).recordings
        assert sum(recording.events.values()) == count


def test_args_of_a_changed_file_are_an_error_in_words(place: Path, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    event = {"ph": "X", "name": "op", "ts": 1, "dur": 1, "args": {"a": [1, {"b": "c"}]}}
    file.write_text(json.dumps([event, event]))
    (recording,) = maiprof_nb.load(file).recordings
    assert recording.args(1) == {"a": [1, {"b": "c"}]}
    file.write_text(json.dumps([event]))
    with pytest.raises(maiprof_nb.LoadError, match="changed since it was loaded"):
        recording.args(1)


@pytest.mark.parametrize("damage", ["manifest", "short", "garbage", "missing"])
def test_a_damaged_entry_is_dropped_and_the_file_read_again(damage: str, place: Path) -> None:
    source = SAMPLE / "rank0.pt.trace.json.gz"
    (first,) = maiprof_nb.load(source).recordings
    (entry,) = entries(place)
    table = entry / "kernels.arrow"
    if damage == "manifest":
        (entry / "recording.json").write_text("{")
    elif damage == "short":
        table.write_bytes(table.read_bytes()[: table.stat().st_size // 2])
    elif damage == "garbage":
        table.write_bytes(b"ARROW1" + os.urandom(4096))
    else:
        table.unlink()
    (again,) = maiprof_nb.load(source).recordings
    pd.testing.assert_frame_equal(
        first.table("kernels"), again.table("kernels"), check_categorical=False
    )
    assert len(entries(place)) == 1  # written anew


def test_the_least_recently_used_goes_when_the_limit_is_reached(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = []
    for number in range(3):
        events = [
            {"ph": "X", "name": f"op{number}", "ts": i, "dur": 1, "cat": "cpu_op"}
            for i in range(20_000)
        ]
        files.append(tmp_path / f"trace{number}.json")
        files[-1].write_text(json.dumps(events))
    maiprof_nb.load(files[0])
    (size,) = [sum(f.stat().st_size for f in entry.iterdir()) for entry in entries(place)]
    monkeypatch.setenv("MAIPROF_CACHE_GB", str(size * 2.5 / 1e9))
    maiprof_nb.load(files[1])
    for number, entry in enumerate(entries(place)):  # times of use are some ns apart
        os.utime(entry / "recording.json", (number, number))
    kept_before = max(entries(place), key=lambda e: (e / "recording.json").stat().st_mtime)
    maiprof_nb.load(files[2])
    assert len(entries(place)) == 2
    assert kept_before in entries(place)


def test_off_means_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAIPROF_CACHE", "off")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(cache, "MIN_BYTES", 0)
    maiprof_nb.load(SAMPLE / "gpu.csv")
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_place_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("MAIPROF_CACHE", str(blocked))
    monkeypatch.setattr(cache, "MIN_BYTES", 0)
    assert len(maiprof_nb.load(SAMPLE / "gpu.csv").table("counters"))


def test_many_writers_and_readers_at_once_agree(place: Path, tmp_path: Path) -> None:
    data = gzip.decompress((SAMPLE / "rank0.pt.trace.json.gz").read_bytes())
    file = tmp_path / "rank0.json"
    file.write_bytes(data)
    program = (
        "import maiprof_nb, sys\n"
        "from maiprof_nb.loading import cache\n"
        "cache.MIN_BYTES = 0\n"
        "for _ in range(3):\n"
        "    print(len(maiprof_nb.load(sys.argv[1]).table('kernels')))\n"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(file)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    said = [process.communicate(timeout=120)[0].split() for process in running]
    assert all(process.returncode == 0 for process in running)
    assert {count for one in said for count in one} == {said[0][0]}
    assert len(entries(place)) == 1
    assert not list(place.glob("*/entries/.making-*"))
