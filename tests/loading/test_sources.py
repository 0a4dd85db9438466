"""Where bytes come from: files, folders, URLs, wrapped in gzip or not."""

from __future__ import annotations

import gzip
import os

import fsspec
import pytest

import maiprof_nb
from maiprof_nb.errors import LoadError
from maiprof_nb.loading import sources
from tests import tiny_traces as tiny

TRACE = tiny.text([tiny.operator("op", 1, 2)])


@pytest.fixture
def memory():
    """The file system of fsspec in memory, emptied afterwards."""
    system = fsspec.filesystem("memory")
    yield system
    for path in list(system.store):
        del system.store[path]
    system.pseudo_dirs[:] = [""]


def test_a_file_is_itself(tmp_path):
    path = tmp_path / "a b#c?.json"
    path.write_bytes(TRACE)
    assert sources.files(str(path)) == [str(path)]
    assert sources.content(str(path)) == (TRACE, [])


def test_a_folder_is_all_that_lies_below(tmp_path):
    for name in ("b.json", "deep/er/a.json", ".hidden", ".git/config", "__MACOSX/b.json"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(TRACE)
    found = sources.files(str(tmp_path))
    assert found == [str(tmp_path / "b.json"), str(tmp_path / "deep/er/a.json")]
    assert sources.files(f"{tmp_path}/") == found


def test_a_folder_below_a_hidden_one_is_not_hidden(tmp_path):
    folder = tmp_path / ".cache" / "job"
    folder.mkdir(parents=True)
    (folder / "a.json").write_bytes(TRACE)
    assert sources.files(str(folder)) == [str(folder / "a.json")]


def test_relative_paths(tmp_path, monkeypatch):
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "rank3.json").write_bytes(TRACE)
    monkeypatch.chdir(tmp_path)
    assert maiprof_nb.load("job").ranks == [3]
    assert maiprof_nb.load("job/rank3.json").recordings[0].source == "job/rank3.json"


def test_a_url(memory):
    memory.pipe("/job/rank0.json", TRACE)
    memory.pipe("/job/sub/rank1.json.gz", gzip.compress(TRACE))
    memory.pipe("/job/.hidden", b"no")
    assert sources.files("memory://job/rank0.json") == ["memory://job/rank0.json"]
    session = maiprof_nb.load("memory://job")
    assert session.ranks == [0, 1]
    assert all(r.source.startswith("memory://") for r in session.recordings)
    assert not session.notes or {n.code for _, n in session.notes} == {"rank-from-name"}


@pytest.mark.parametrize(
    ("where", "problem"),
    [
        ("/no/such/folder/x.json", "there is no such file or folder"),
        ("memory://nothing/here.json", "there is no such file or folder"),
        ("nosuchprotocol://x/y.json", "cannot be opened"),
        ("with\0nul", "cannot be opened"),
    ],
)
def test_what_is_not_there(where, problem):
    with pytest.raises(LoadError, match=problem) as error:
        maiprof_nb.load(where)
    assert error.value.where == where


@pytest.mark.parametrize("hidden", [False, True])
def test_an_empty_folder(tmp_path, hidden):
    if hidden:
        (tmp_path / ".DS_Store").write_bytes(b"x")
    with pytest.raises(LoadError, match="the folder holds no files"):
        maiprof_nb.load(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(tmp_path):
    path = tmp_path / "locked.json"
    path.write_bytes(TRACE)
    path.chmod(0)
    with pytest.raises(LoadError, match="cannot be read"):
        maiprof_nb.load(path)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_gzip_once_and_more(tmp_path, times):
    data = TRACE
    for _ in range(times):
        data = gzip.compress(data)
    path = tmp_path / "trace.json"
    path.write_bytes(data)
    found, notes = sources.content(str(path))
    assert found == TRACE
    assert [note.code for note in notes] == ["gzip-twice"] * (times - 1)


def test_gzip_of_several_members(tmp_path):
    """`cat a.gz b.gz` and block-wise writers make one file of many gzip streams."""
    parts = [TRACE[:10], TRACE[10:11], b"", TRACE[11:]]
    path = tmp_path / "trace.json.gz"
    path.write_bytes(b"".join(gzip.compress(part) for part in parts))
    assert sources.content(str(path)) == (TRACE, [])


def test_more_than_one_slice(tmp_path):
    """Larger than what is handed to zlib at a time, packed and unpacked."""
    data = os.urandom(9 * 2**20) + bytes(20 * 2**20)
    path = tmp_path / "big.gz"
    path.write_bytes(gzip.compress(data, 1) + gzip.compress(b"end"))
    found, notes = sources.content(str(path))
    assert found == data + b"end"
    assert notes == []


def test_a_cut_stream_gives_what_comes_before_the_cut(tmp_path):
    plain = tiny.text([tiny.operator(f"op{number}", number, 1) for number in range(2000)])
    packed = gzip.compress(plain)
    path = tmp_path / "rank0.json.gz"
    for share in (0.3, 0.6, 0.99):
        path.write_bytes(packed[: int(len(packed) * share)])
        found, notes = sources.content(str(path))
        assert plain.startswith(found)
        assert len(found) > share * len(plain) / 3
        assert [note.code for note in notes] == ["gzip-cut"]
        assert str(len(found)) in notes[0].text
    session = maiprof_nb.load(path)
    assert {note.code for _, note in session.notes} >= {"gzip-cut", "cut"}


def test_without_its_checksum_only_the_note_differs(tmp_path):
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(TRACE)[:-8])
    found, notes = sources.content(str(path))
    assert found == TRACE
    assert [note.code for note in notes] == ["gzip-cut"]


def test_damage_inside_the_stream(tmp_path):
    plain = tiny.text([tiny.operator(f"op{number}", number, 1) for number in range(20000)])
    packed = bytearray(gzip.compress(plain))
    middle = len(packed) // 2
    packed[middle : middle + 40] = bytes(40)
    path = tmp_path / "trace.json.gz"
    path.write_bytes(packed)
    found, notes = sources.content(str(path))
    assert found[:1000] == plain[:1000]
    assert [note.code for note in notes] == ["gzip-damaged"]


def test_a_bomb_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("MAIPROF_MAX_BYTES", "10000")
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(bytes(20_000)))
    with pytest.raises(LoadError, match="unpacks to more than"):
        sources.content(str(path))


def test_text_behind_the_stream_is_ignored(tmp_path):
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(TRACE) + bytes(512))  # padding, as tape blocks have
    assert sources.content(str(path)) == (TRACE, [])
