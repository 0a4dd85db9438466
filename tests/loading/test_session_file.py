"""Session files: what comes back, what is refused, what a stranger's file may open."""

from __future__ import annotations

import json
import zipfile

import pytest

import maiprof_nb
from maiprof_nb import LoadError, UsageError
from maiprof_nb.placement import BY_HAND, Placement
from tests import tiny_traces as tiny

BASE = 1_700_000_000_000_000_000
S = 1_000_000_000
DMON = """\
# gpu    sm   mem
# Idx     %     %
    0     5     1
    0    90     2
    0    80     2
"""
SMI = "timestamp, index, utilization.gpu [%]\n2023/11/14 23:13:20.000, 0, 7 %\n"


@pytest.fixture
def folder(tmp_path):
    job = tmp_path / "job"
    (job / "logs").mkdir(parents=True)
    events = [tiny.operator("op", 0, 4e6)]
    (job / "rank.json").write_bytes(tiny.text(events, baseTimeNanoseconds=BASE))
    (job / "logs" / "dmon.txt").write_text(DMON)
    (job / "logs" / "gpu.csv").write_text(SMI)
    return job


def session(folder):
    loaded = maiprof_nb.load(
        [folder / "rank.json", folder / "logs" / "dmon.txt", folder / "logs" / "gpu.csv"],
        ranks={"rank.json": 3},
        zone="Europe/Berlin",
    )
    return loaded.placed({"dmon.txt": S // 2}, interval_s={"dmon.txt": 0.1}, uncertainty_ns=7)


def saved(folder, name="review.maiprof.json"):
    session(folder).save(folder / name)
    return folder / name


def edited(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    return path


def test_everything_comes_back(folder):
    before, after = session(folder), maiprof_nb.load(saved(folder))
    assert after.axis == before.axis
    assert after.ranks == [3]
    placement = after.placements[1]
    assert placement == Placement(S // 2, BY_HAND, 7, stated=True)
    assert after.table("counters").equals(before.table("counters"))
    assert after.clocks["origin"].tolist() == before.clocks["origin"].tolist()
    assert "Europe/Berlin" in after.clocks["origin"][2]
    assert after.epoch_ns == BASE


def test_it_comes_back_once_more(folder):
    path = saved(folder)
    text = path.read_text()
    maiprof_nb.load(path).save(path)
    assert path.read_text() == text


def test_it_is_recognised_by_its_content(folder):
    path = saved(folder, "note.txt")
    assert len(maiprof_nb.load(path).recordings) == 3


def test_the_folder_can_be_moved(folder, tmp_path):
    saved(folder)
    content = json.loads((folder / "review.maiprof.json").read_text())
    assert [one["source"] for one in content["recordings"]] == [
        "rank.json",
        "logs/dmon.txt",
        "logs/gpu.csv",
    ]
    moved = folder.rename(tmp_path / "elsewhere")
    assert maiprof_nb.load(moved / "review.maiprof.json").epoch_ns == BASE


def test_a_folder_is_loaded_without_its_session_files(folder):
    saved(folder)
    loaded = maiprof_nb.load(folder)
    assert len(loaded.recordings) == 3
    assert "file-left-out" not in {note.code for _, note in loaded.notes}
    for name in ("rank.json", "logs/dmon.txt", "logs/gpu.csv"):
        (folder / name).unlink()
    with pytest.raises(LoadError, match="session files only") as error:
        maiprof_nb.load(folder)
    assert "review.maiprof.json" in error.value.remedy


@pytest.mark.parametrize("members", [("a/rank.json",), ("a/rank.json", "b/gpu.csv")])
def test_members_of_an_archive(folder, members):
    with zipfile.ZipFile(folder / "job.zip", "w") as archive:
        for member in members:
            name = "rank.json" if member.endswith("json") else "logs/gpu.csv"
            archive.writestr(member, (folder / name).read_bytes())
    before = maiprof_nb.load(folder / "job.zip", zone="UTC").placed({0: 5})
    before.save(folder / "x.maiprof.json")
    after = maiprof_nb.load(folder / "x.maiprof.json")
    assert [r.source for r in after.recordings] == [r.source for r in before.recordings]
    assert after.axis == before.axis


def test_a_recording_that_is_gone(folder):
    path = saved(folder)
    (folder / "logs" / "gpu.csv").unlink()
    with pytest.raises(LoadError, match=r"is not there: logs/gpu\.csv"):
        maiprof_nb.load(path)
    left = maiprof_nb.load(folder / "rank.json")
    (folder / "rank.json").unlink()
    with pytest.raises(UsageError, match="no longer there"):
        left.save(folder / "other.maiprof.json")
    assert not (folder / "other.maiprof.json").exists()


def test_a_recording_that_changed(folder):
    path = saved(folder)
    (folder / "logs" / "dmon.txt").write_text(DMON.replace("90", "91"))
    with pytest.raises(LoadError, match=r"has changed since it was saved: logs/dmon\.txt"):
        maiprof_nb.load(path)


def test_a_change_in_the_last_bytes_of_a_large_file_is_seen(folder):
    blanks = b" " * (3 * 2**20)
    data = (folder / "rank.json").read_bytes() + blanks
    (folder / "rank.json").write_bytes(data)
    path = saved(folder)
    (folder / "rank.json").write_bytes(data[:-1] + b"\n")
    with pytest.raises(LoadError, match="has changed"):
        maiprof_nb.load(path)


OUTSIDE = [
    "/etc/passwd",
    "../outside.json",
    "logs/../../outside.json",
    "..\\outside.json",
    "C:\\Windows\\win.ini",
    "\\\\host\\share\\file",
    "~/secret.json",
    "file:///etc/passwd",
    "https://example.invalid/trace.json",
    "simplecache::https://example.invalid/trace.json",
    "rank.json\0",
]


@pytest.mark.parametrize("source", OUTSIDE)
def test_a_session_file_opens_nothing_outside_its_folder(folder, monkeypatch, source):
    path = edited(saved(folder), lambda c: c["recordings"][0].update(source=source))
    opened = []
    monkeypatch.setattr(maiprof_nb.session_file, "fingerprint", opened.append)
    with pytest.raises(LoadError, match="names a recording outside its own folder") as error:
        maiprof_nb.load(path)
    assert "trust_paths=True" in error.value.remedy
    assert opened == []


def test_a_link_out_of_the_folder_is_outside(folder, tmp_path):
    path = saved(folder)
    (tmp_path / "outside.json").write_bytes((folder / "rank.json").read_bytes())
    (folder / "rank.json").unlink()
    (folder / "rank.json").symlink_to(tmp_path / "outside.json")
    with pytest.raises(LoadError, match="outside its own folder"):
        maiprof_nb.load(path)
    assert maiprof_nb.load(path, trust_paths=True).ranks == [3]


def test_recordings_elsewhere_need_trust(folder, tmp_path):
    path = tmp_path / "other" / "review.maiprof.json"
    path.parent.mkdir()
    session(folder).save(path)
    assert json.loads(path.read_text())["recordings"][0]["source"] == str(folder / "rank.json")
    with pytest.raises(LoadError, match="outside its own folder"):
        maiprof_nb.load(path)
    assert maiprof_nb.load(path, trust_paths=True).axis == session(folder).axis


DAMAGE = {
    "cut": lambda text: text[: len(text) // 2],
    "no list": lambda _: '{"maiprof_session": 1, "recordings": 7}',
    "no recordings": lambda _: '{"maiprof_session": 1}',
    "a float": lambda text: text.replace(f'"offset_ns": {S // 2}', '"offset_ns": 1e308'),
    "2^70": lambda text: text.replace(f'"offset_ns": {S // 2}', f'"offset_ns": {2**70}'),
    "deep": lambda _: '{"maiprof_session": 1, "recordings": ' + "[" * 100_000,
    "unknown field": lambda text: text.replace('"rank": 3', '"rang": 3'),
    "bad UTF-8": lambda text: text.replace("rank.json", "\udcff"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_session_files(folder, damage):
    path = saved(folder)
    before = path.read_text()
    after = DAMAGE[damage](before)
    assert after != before
    path.write_text(after, errors="surrogateescape")
    with pytest.raises(LoadError, match="damaged session file"):
        maiprof_nb.load(path)


def test_a_bad_zone_in_a_session_file(folder):
    path = edited(saved(folder), lambda c: c["recordings"][2].update(zone="Nowhere/City"))
    with pytest.raises(LoadError, match="no time zone 'Nowhere/City'"):
        maiprof_nb.load(path)


def test_a_later_version_and_a_huge_file(folder):
    path = edited(saved(folder), lambda c: c.update(maiprof_session=2))
    with pytest.raises(LoadError, match="session file of version 2"):
        maiprof_nb.load(path)
    path.write_text('{"maiprof_session": 1' + " " * (5 * 2**20))
    with pytest.raises(LoadError, match="too large"):
        maiprof_nb.load(path)


def test_a_session_file_within_a_session_file_is_not_followed(folder):
    path = saved(folder)
    content = json.loads(path.read_text())
    loop = folder / "loop.maiprof.json"
    session(folder).save(loop)
    size, digest = maiprof_nb.session_file.fingerprint(str(loop))
    content["recordings"][0].update(source=loop.name, size_bytes=size, ends_sha256=digest)
    path.write_text(json.dumps(content))
    with pytest.raises(LoadError):
        maiprof_nb.load(path)


def test_a_session_file_is_loaded_alone(folder):
    path = saved(folder)
    with pytest.raises(LoadError, match="others were given beside it"):
        maiprof_nb.load([path, folder / "rank.json"])
    with pytest.raises(UsageError, match="not for a session file"):
        maiprof_nb.load(path, zone="UTC")


def test_places_that_cannot_be_written_to(folder):
    with pytest.raises(UsageError, match="cannot be written"):
        session(folder).save(folder / "nowhere" / "x.maiprof.json")
    with pytest.raises(UsageError, match="to a local file"):
        session(folder).save("s3://bucket/x.maiprof.json")


def test_progress_is_reported(folder):
    seen = []
    maiprof_nb.load(saved(folder), report=seen.append)
    assert all(0 <= share <= 1 for share in seen)
