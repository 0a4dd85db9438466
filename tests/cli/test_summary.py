"""`maiprof summary`: the JSON contract word by word, text for people, errors as sentences."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from maiprof_nb.cli.main import main
from tests import tiny_traces as tiny

CORPUS = Path(os.environ.get("MAIPROF_CORPUS", Path(__file__).parents[3] / "shared" / "corpus"))
SAMPLES = Path(__file__).parents[2] / "sample_traces"
FILES = sorted(
    path for path in CORPUS.rglob("*") if path.is_file() and path.suffix.lower() != ".md"
)
TOP = {"source", "recordings", "ranks", "steps", "span_ns"}
ONE = {"source", "kind", "rank", "span_ns", "events", "tables", "notes"}


def summary(capsys, *arguments) -> tuple[int, list[str]]:
    code = main(["summary", *map(str, arguments)])
    printed = capsys.readouterr()
    assert printed.err == ""
    return code, printed.out.splitlines()


def objects(capsys, *paths) -> tuple[int, list[dict]]:
    code, lines = summary(capsys, "--json", *paths)
    return code, [json.loads(line) for line in lines]


@pytest.fixture
def trace(tmp_path):
    def write(name="rank3.json", *events, **meta):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(
            tiny.text(
                events
                or [
                    tiny.step(7, 1000, 100),
                    tiny.operator("op", 1010, 20),
                    tiny.kernel(1050, 150),
                    {"ph": "f", "cat": "ac2g", "id": 1, "ts": 1050, "pid": 0, "tid": 7},
                    {"ph": "i", "name": "no category", "ts": 1001, "pid": 0, "tid": 7},
                ],
                **meta,
            )
        )
        return path

    return write


def test_the_contract_of_one_trace(trace, capsys):
    path = trace(distributedInfo={"rank": 3})
    code, (found,) = objects(capsys, path)
    assert code == 0
    tables = found["recordings"][0].pop("tables")
    assert found == {
        "source": str(path),
        "recordings": [
            {
                "source": str(path),
                "kind": "trace",
                "rank": 3,
                "span_ns": 200_000,
                "events": {
                    "X/user_annotation": 1,
                    "X/cpu_op": 1,
                    "X/kernel": 1,
                    "f/ac2g": 1,
                    "i/": 1,
                },
                "notes": [],
            }
        ],
        "ranks": [3],
        "steps": 1,
        "span_ns": 200_000,
    }
    filled = {name: rows for name, rows in tables.items() if rows}
    assert filled == dict.fromkeys(
        ("annotations", "steps", "operators", "kernels", "flows", "other_events"), 1
    )


def test_notes_have_code_count_and_text(trace, capsys):
    path = trace("trace.json", tiny.operator("op", 1, -1), tiny.operator("op", 1, -1))
    _, (found,) = objects(capsys, path)
    notes = found["recordings"][0]["notes"]
    assert [(note["code"], note["count"]) for note in notes] == [
        ("negative-duration", 2),
        ("rank-unknown", 1),
    ]
    assert all(set(note) == {"code", "count", "text"} for note in notes)
    assert found["ranks"] == []
    assert found["recordings"][0]["rank"] is None


def test_one_line_a_path_in_order_and_all_are_tried(trace, tmp_path, capsys):
    good, missing = trace(), tmp_path / "no such file"
    (tmp_path / "bad.txt").write_text("nothing\n")
    code, found = objects(capsys, missing, good, tmp_path / "bad.txt", good)
    assert code == 2
    assert [one["source"] for one in found] == [
        str(missing),
        str(good),
        str(tmp_path / "bad.txt"),
        str(good),
    ]
    assert ["error" in one for one in found] == [True, False, True, False]
    for one in (found[0], found[2]):
        assert set(one) == {"source", "error"}
        assert one["source"] in one["error"]
        assert "\n" not in one["error"]


def test_a_folder_is_one_recording_of_many_files(trace, tmp_path, capsys):
    for rank in (1, 0):
        trace(f"job/rank{rank}.json")
    code, (found,) = objects(capsys, tmp_path / "job")
    assert code == 0
    assert found["source"] == str(tmp_path / "job")
    assert [one["rank"] for one in found["recordings"]] == [0, 1]
    assert found["ranks"] == [0, 1]
    assert found["steps"] == 1  # the ranks share it


def test_trace_snapshot_and_metrics_of_one_job(capsys):
    code, (found,) = objects(capsys, SAMPLES / "leak")
    assert code == 0
    assert sorted(one["kind"] for one in found["recordings"]) == [
        "metrics",
        "metrics",
        "snapshot",
        "trace",
    ]
    assert all(set(one) == ONE for one in found["recordings"])
    snapshot = next(one for one in found["recordings"] if one["kind"] == "snapshot")
    assert snapshot["events"]["alloc"] > 0


def test_only_ascii_is_written_and_nothing_lost(trace, capsys):
    """Names from files: controls, a bidirectional override, an emoji."""
    odd = "k\x1b[31m\x9b1m\u202e\N{GRINNING FACE}"
    path = trace("trace.json", tiny.complete("op", odd, 1, 1))
    code, lines = summary(capsys, "--json", path)
    assert code == 0
    assert lines[0].isascii()
    assert lines[0].isprintable()
    assert json.loads(lines[0])["recordings"][0]["events"] == {f"X/{odd}": 1}


def test_text_for_people(trace, capsys):
    events = [tiny.operator("op", 1000 + i, 1) for i in range(1234)]
    path = trace("rank0.json", *events)
    code, lines = summary(capsys, path)
    assert code == 0
    assert lines[0] == str(path)
    assert lines[1] == "  1 recording(s), 1.23 ms, 0 steps, ranks 0"
    assert lines[2] == f"  trace, rank 0: {path}"
    assert lines[3] == "    1\N{NARROW NO-BREAK SPACE}234 operators"
    assert lines[4].startswith("    note (rank-from-name, 1): ")


def test_text_of_an_error(tmp_path, capsys):
    code, lines = summary(capsys, tmp_path / "nothing")
    assert code == 2
    assert lines[0] == str(tmp_path / "nothing")
    assert lines[1].startswith("  cannot be read: ")


@pytest.mark.parametrize("exists", [True, False])
def test_names_cannot_steer_the_terminal(trace, tmp_path, capsys, exists):
    name = "rank0\x1b]0;title\x07\x9b2J.json"
    path = trace(name) if exists else tmp_path / name
    _, lines = summary(capsys, path)
    text = "\n".join(lines)
    assert not {"\x1b", "\x07", "\x9b"} & set(text)
    assert "\N{REPLACEMENT CHARACTER}" in text


@pytest.mark.skipif(not FILES, reason=f"no corpus at {CORPUS}: set MAIPROF_CORPUS")
@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CORPUS)))
def test_every_file_of_the_corpus_is_summed_up_or_refused_politely(path, capsys):
    code, (found,) = objects(capsys, path)
    if code == 2:
        assert set(found) == {"source", "error"}
        assert len(found["error"]) > len(str(path)) + 10
        assert "Traceback" not in found["error"]
        return
    assert code == 0
    assert set(found) == TOP
    assert found["recordings"]
    for one in found["recordings"]:
        assert set(one) == ONE
        assert one["kind"] in {"trace", "snapshot", "metrics", "timeline"}
        assert one["span_ns"] >= 0
        assert all(type(rows) is int and rows >= 0 for rows in one["tables"].values())
        assert all(type(count) is int and count >= 0 for count in one["events"].values())
        assert all(note["count"] >= 1 and note["text"] for note in one["notes"])
    assert found["span_ns"] >= max(one["span_ns"] for one in found["recordings"])


def test_failed_checks_are_said_to_people_and_not_in_the_json(trace, capsys):
    path = trace("rank0.json", *[tiny.launch(i, 1000 + i) for i in range(5)])
    _, lines = summary(capsys, path)
    assert any("check failed (no-device-work): The host launched device work 5" in t for t in lines)
    _, (found,) = objects(capsys, path)
    assert set(found) == TOP
    assert set(found["recordings"][0]) == ONE


def test_a_stated_zone(tmp_path, capsys):
    log = tmp_path / "gpu.csv"
    log.write_text("timestamp, index, utilization.gpu [%]\n2025/03/30 02:30:00.000, 0, 7 %\n")
    _, (found,) = objects(capsys, "--zone", "Europe/Berlin", log)
    assert "zone-hour-skipped" in [note["code"] for note in found["recordings"][0]["notes"]]
    code, (found,) = objects(capsys, "--zone", "Nowhere", log)
    assert code == 2
    assert "there is no time zone 'Nowhere'" in found["error"]
