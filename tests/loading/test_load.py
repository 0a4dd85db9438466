"""From paths to a session: which rank a file is, and what a folder leaves out."""

from __future__ import annotations

import re

import pytest

import maiprof_nb
from maiprof_nb.errors import LoadError, UsageError
from tests import tiny_traces as tiny


def write(folder, name, *, ts=1, **meta):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(tiny.text([tiny.operator("op", ts, 2)], **meta))
    return path


def rank(number):
    return {"distributedInfo": {"rank": number, "world_size": 2}}


def codes(session):
    return [note.code for _, note in session.notes]


def test_one_path_or_several(tmp_path):
    first, second = write(tmp_path, "a.json", **rank(0)), write(tmp_path, "b.json", **rank(1))
    assert maiprof_nb.load(str(first)).ranks == [0]
    assert maiprof_nb.load([first, str(second)]).ranks == [0, 1]
    assert maiprof_nb.load(tmp_path).ranks == [0, 1]


def test_two_traces_of_one_rank_cannot_be_one_job(tmp_path):
    paths = [write(tmp_path, name, **rank(0)) for name in ("before.json", "after.json")]
    with pytest.raises(LoadError, match="two traces claim rank 0") as error:
        maiprof_nb.load(paths)
    assert all(str(path) in error.value.sentence for path in paths)
    assert "one at a time" in error.value.remedy
    assert "ranks=" in error.value.remedy
    with pytest.raises(LoadError, match="two traces claim rank 0"):
        maiprof_nb.load(tmp_path)


def test_the_remedy_of_that_error_works(tmp_path):
    paths = [write(tmp_path, name, **rank(0)) for name in ("before.json", "after.json")]
    session = maiprof_nb.load(paths, ranks={"before.json": 0, "after.json": 1})
    assert [recording.rank for recording in session.recordings] == [0, 1]
    assert codes(session) == ["rank-by-hand", "rank-by-hand"]


def test_ranks_by_path_before_ranks_by_name(tmp_path):
    paths = [write(tmp_path, f"{host}/trace.json") for host in ("a", "b")]
    session = maiprof_nb.load(tmp_path, ranks={str(paths[0]): 4, str(paths[1]): 7})
    assert session.ranks == [4, 7]
    session = maiprof_nb.load(paths[0], ranks={"trace.json": 1, str(paths[0]): 2})
    assert session.ranks == [2]


def test_a_rank_by_hand_replaces_what_was_guessed(tmp_path):
    path = write(tmp_path, "rank5.json")
    assert codes(maiprof_nb.load(path)) == ["rank-from-name"]
    session = maiprof_nb.load(path, ranks={"rank5.json": 0})
    assert session.ranks == [0]
    assert codes(session) == ["rank-by-hand"]


def test_ranks_of_files_that_are_not_there_are_an_error(tmp_path):
    path = write(tmp_path, "a.json")
    with pytest.raises(UsageError, match=re.escape("was not loaded: b.json")) as error:
        maiprof_nb.load(path, ranks={"a.json": 0, "b.json": 1})
    assert "a.json" in error.value.remedy


def test_traces_without_a_rank_do_not_exclude_each_other(tmp_path):
    paths = [write(tmp_path, name) for name in ("a.json", "b.json")]
    session = maiprof_nb.load(paths)
    assert session.ranks == []
    assert codes(session) == ["rank-unknown", "rank-unknown"]


def test_a_folder_leaves_out_what_cannot_be_read(tmp_path):
    write(tmp_path, "rank0.json")
    (tmp_path / "a-notes.txt").write_text("batch size 32\n")
    (tmp_path / "z-empty.json").write_bytes(b"")
    session = maiprof_nb.load(tmp_path)
    assert [r.kind for r in session.recordings] == ["trace"]
    (note,) = [note for _, note in session.notes if note.code == "file-left-out"]
    assert note.count == 2
    assert "a-notes.txt" in note.text


def test_a_folder_in_which_nothing_can_be_read(tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("nothing\n")
    with pytest.raises(LoadError, match="none of the 2 files in there can be read") as error:
        maiprof_nb.load(tmp_path)
    assert "a.txt" in error.value.sentence


def test_an_unreadable_file_given_by_name_is_an_error(tmp_path):
    good = write(tmp_path, "rank0.json")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(LoadError, match=re.escape("bad.json")):
        maiprof_nb.load([good, tmp_path / "bad.json"])


def test_nothing_given():
    with pytest.raises(LoadError, match="nothing was given"):
        maiprof_nb.load([])


def test_content_and_not_the_name_decides(tmp_path):
    path = write(tmp_path, "metrics.csv")
    (recording,) = maiprof_nb.load(path).recordings
    assert (recording.kind, recording.format) == ("trace", "kineto-json")
