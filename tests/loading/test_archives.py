"""Compressed files and archives give the bytes that were put in, and touch no disk.

Right values: the bytes each test itself packs, with Python's own zipfile, tarfile, gzip, bz2,
lzma and zstd.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import stat
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from maiprof_nb.errors import LoadError, UsageError
from maiprof_nb.loading import limits, sources
from maiprof_nb.loading.archives import Part
from maiprof_nb.loading.limits import Limits

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

TRACE = (
    b'{"traceEvents": ['
    + b",".join(
        b'{"ph": "X", "cat": "cpu_op", "name": "aten::add", "ts": %d, "dur": 1}' % n
        for n in range(5_000)
    )
    + b"]}"
)
# Hard to compress, so that a cut falls behind several blocks.
NOISE = b"".join(b"%d," % (n * n * 7_919 % 1_000_003) for n in range(120_000))
FILES = {"rank0.json": TRACE, "rank1.json": TRACE.replace(b"add", b"mul")}
COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": zstd.compress,
    "xz": lzma.compress,
    "bzip2": bz2.compress,
}


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return made.getvalue()


def tarred(
    files: dict[str, bytes], *more: tarfile.TarInfo, form: int = tarfile.PAX_FORMAT
) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=form) as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
        for entry in more:
            archive.addfile(entry)
    return made.getvalue()


def entry(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, target
    return made


def opened(folder: Path, data: bytes, name: str = "ranks.bin") -> list[Part]:
    """The parts of a file that is called something else on purpose."""
    path = folder / name
    path.write_bytes(data)
    return list(sources.open_all(str(path)))


def contents(parts: list[Part]) -> dict[str, bytes]:
    return {part.name.rsplit("/", 1)[-1]: part.content() for part in parts}


def codes(parts: list[Part]) -> list[str]:
    return [note.code for part in parts for note in part.notes]


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_one_compressed_file(tmp_path: Path, name: str) -> None:
    (part,) = opened(tmp_path, COMPRESSIONS[name](TRACE))
    assert part.content() == TRACE
    assert part.name == str(tmp_path / "ranks.bin")
    assert not part.notes


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_streams_end_to_end_are_one_file(tmp_path: Path, name: str) -> None:
    pack = COMPRESSIONS[name]
    (part,) = opened(tmp_path, pack(TRACE[:1000]) + pack(b"") + pack(TRACE[1000:]))
    assert part.content() == TRACE


@pytest.mark.parametrize(
    ("name", "pack", "at_least"),
    [
        ("gzip", gzip.compress, 0.74),
        ("zstd", zstd.compress, 0.55),  # 128 KiB a block, six of them
        ("xz", lzma.compress, 0.70),
        ("bzip2", lambda data: bz2.compress(data, 1), 0.60),  # 100 kB a block, eight of them
    ],
)
def test_a_cut_stream_gives_what_stands_before_the_cut(
    tmp_path: Path, name: str, pack: Callable[[bytes], bytes], at_least: float
) -> None:
    packed = pack(NOISE)
    (part,) = opened(tmp_path, packed[: len(packed) * 3 // 4])
    assert NOISE.startswith(part.content())
    assert len(part.content()) >= len(NOISE) * at_least
    assert codes([part]) == [f"{name}-cut"]


def test_damage_in_a_gzip_loses_no_byte_before_it(tmp_path: Path) -> None:
    packer = zlib.compressobj(wbits=31)
    whole = packer.compress(NOISE) + packer.flush(zlib.Z_SYNC_FLUSH)
    (part,) = opened(tmp_path, whole + b"\x07" * 1_000)  # a block of type 3, which there is not
    assert part.content() == NOISE
    assert codes([part]) == ["gzip-damaged"]


def test_a_wrong_check_sum_is_noted(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(NOISE))
    packed[-8] ^= 1
    (part,) = opened(tmp_path, bytes(packed))
    assert part.content() == NOISE
    assert codes([part]) == ["gzip-damaged"]


def test_bytes_behind_the_end_are_counted(tmp_path: Path) -> None:
    (part,) = opened(tmp_path, gzip.compress(TRACE) + b"\0\0 more")
    assert part.content() == TRACE
    assert [(note.code, note.count) for note in part.notes] == [("trailing-bytes", 5)]


def test_zeros_behind_the_end_are_padding(tmp_path: Path) -> None:
    (part,) = opened(tmp_path, gzip.compress(TRACE) + b"\0" * 512)
    assert not part.notes


def test_twice_compressed_is_noted(tmp_path: Path) -> None:
    (part,) = opened(tmp_path, gzip.compress(zstd.compress(TRACE)))
    assert part.content() == TRACE
    assert codes([part]) == ["gzip-twice"]


@pytest.mark.parametrize(
    "method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2], ids=str
)
def test_zip_of_ranks(tmp_path: Path, method: int) -> None:
    parts = opened(tmp_path, zipped(FILES, method))
    assert contents(parts) == FILES
    assert [part.name for part in parts] == [f"{tmp_path}/ranks.bin/{name}" for name in FILES]
    assert not codes(parts)


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("pack", [bytes, *COMPRESSIONS.values()], ids=["plain", *COMPRESSIONS])
def test_tar_of_ranks(tmp_path: Path, form: int, pack: Callable[[bytes], bytes]) -> None:
    long = {f"{'a' * 60}/{'b' * 60}/rank2.json": TRACE}
    assert contents(opened(tmp_path, pack(tarred(FILES | long, form=form)))) == {
        **FILES,
        "rank2.json": TRACE,
    }


def test_members_compressed_on_their_own(tmp_path: Path) -> None:
    parts = opened(tmp_path, tarred({"rank0.json.gz": gzip.compress(TRACE), "rank1": TRACE}))
    assert contents(parts) == {"rank0.json.gz": TRACE, "rank1": TRACE}
    assert not codes(parts)


def test_an_archive_in_an_archive(tmp_path: Path) -> None:
    parts = opened(tmp_path, zipped({"host0.tgz": gzip.compress(tarred(FILES)), "x.json": b"{}"}))
    assert [part.name.removeprefix(f"{tmp_path}/") for part in parts] == [
        "ranks.bin/host0.tgz/rank0.json",
        "ranks.bin/host0.tgz/rank1.json",
        "ranks.bin/x.json",
    ]


def test_wrappings_have_a_limit(tmp_path: Path) -> None:
    data = TRACE
    for _ in range(5):
        data = gzip.compress(data)
    with pytest.raises(LoadError, match="packed more than 4 times over"):
        opened(tmp_path, data)[0].content()
    with limits.using(Limits(max_wrappings=5)):
        assert opened(tmp_path, data)[0].content() == TRACE


def test_what_is_no_recording_of_a_folder_is_skipped_silently(tmp_path: Path) -> None:
    clutter = {"__MACOSX/._rank0.json": b"x", ".DS_Store": b"x", "run/": b"", "run/.git/a": b"x"}
    parts = opened(tmp_path, zipped(clutter | FILES))
    assert contents(parts) == FILES
    assert not codes(parts)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("../../etc/rank0.json", "etc/rank0.json"),
        ("/abs/rank0.json", "abs/rank0.json"),
        ("C:\\temp\\rank0.json", "temp/rank0.json"),
        ("a/\x1b[31mred.json", "a/?[31mred.json"),
        ("..", "unnamed"),
    ],
)
@pytest.mark.parametrize("pack", [zipped, tarred])
def test_paths_that_lead_out_are_only_names(
    tmp_path: Path, pack: Callable[[dict[str, bytes]], bytes], written: str, shown: str
) -> None:
    parts = opened(tmp_path, pack({written: TRACE, "rank1.json": TRACE}))
    assert [part.name for part in parts] == [
        f"{tmp_path}/ranks.bin/{shown}",
        f"{tmp_path}/ranks.bin/rank1.json",
    ]
    assert codes(parts) == ["archive-paths"]
    assert [path.name for path in tmp_path.rglob("*")] == ["ranks.bin"]


def test_links_and_devices_of_a_tar_are_left_out(tmp_path: Path) -> None:
    odd = [
        entry("link.json", tarfile.SYMTYPE, "/etc/passwd"),
        entry("hard.json", tarfile.LNKTYPE, "rank0.json"),
        entry("tty", tarfile.CHRTYPE),
        entry("pipe", tarfile.FIFOTYPE),
    ]
    parts = opened(tmp_path, tarred(FILES, *odd))
    assert contents(parts) == FILES
    assert [(note.code, note.count) for note in parts[-1].notes] == [("archive-links", 4)]


def test_links_of_a_zip_are_left_out(tmp_path: Path) -> None:
    made = io.BytesIO(zipped(FILES))
    with zipfile.ZipFile(made, "a") as archive:
        link = zipfile.ZipInfo("passwd.json")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    parts = opened(tmp_path, made.getvalue())
    assert contents(parts) == FILES
    assert codes(parts) == ["archive-links"]


def test_an_encrypted_member_is_a_sentence_and_the_others_are_read(tmp_path: Path) -> None:
    data = bytearray(zipped(FILES))
    first, listed = data.index(b"PK\x03\x04"), data.index(b"PK\x01\x02")
    data[first + 6] |= 1  # the flag "encrypted" of the first member, in both of its headers
    data[listed + 8] |= 1
    locked, plain = opened(tmp_path, bytes(data))
    with pytest.raises(LoadError, match=r"is encrypted\. Unpack the archive with its password"):
        locked.content()
    assert plain.content() == FILES["rank1.json"]


def test_a_cut_zip_gives_its_files_up_to_the_cut(tmp_path: Path) -> None:
    data = zipped(FILES)
    second = data.rindex(b"PK\x03\x04")
    parts = opened(tmp_path, data[: second + (len(data) - second) // 2])
    assert parts[0].content() == FILES["rank0.json"]
    assert FILES["rank1.json"].startswith(parts[1].content())
    assert parts[1].content()
    assert codes(parts) == ["archive-damaged", "archive-cut"]


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_cut_tar_gives_its_files_up_to_the_cut(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    data = pack(tarred(FILES)[: 512 + len(TRACE) + 4096])
    parts = opened(tmp_path, data)
    assert parts[0].content() == FILES["rank0.json"]
    assert FILES["rank1.json"].startswith(parts[1].content())
    assert len(parts[1].content()) > 2_000
    assert "archive-cut" in codes(parts)


def test_a_changed_byte_is_noted(tmp_path: Path) -> None:
    data = bytearray(zipped(FILES, zipfile.ZIP_STORED))
    data[data.index(TRACE) + 100] ^= 1
    parts = opened(tmp_path, bytes(data))
    assert codes(parts) == ["archive-damaged"]
    assert "check sum" in parts[0].notes[0].text


def test_a_checkpoint_is_named(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save({"w": torch.zeros(3)}, tmp_path / "model.pt")
    (part,) = sources.open_all(str(tmp_path / "model.pt"))
    with pytest.raises(LoadError, match=r"checkpoint that torch\.save wrote"):
        part.content()


@pytest.mark.parametrize(
    "data", [zipped({}), tarred({}, entry("a", tarfile.DIRTYPE), entry("l", tarfile.SYMTYPE, "x"))]
)
def test_an_archive_without_files(tmp_path: Path, data: bytes) -> None:
    (part,) = opened(tmp_path, data)
    with pytest.raises(LoadError, match="holds no files"):
        part.content()


def test_content_is_for_one_file(tmp_path: Path) -> None:
    path = tmp_path / "trace.zip"
    path.write_bytes(zipped({"trace.json": TRACE}))  # as Chrome saves it
    assert sources.content(str(path)) == (TRACE, [])
    path.write_bytes(zipped(FILES))
    with pytest.raises(LoadError, match="archive of several files"):
        sources.content(str(path))


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_a_bomb_stops_early(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RATIO_FROM_BYTES", 2**20)
    packed = COMPRESSIONS[name](b" " * 2**24)
    assert len(packed) < 2**24 / 500
    with pytest.raises(LoadError, match=r"as a bomb does.*MAIPROF_MAX_RATIO"):
        opened(tmp_path, packed)[0].content()


def test_members_of_one_archive_share_the_ratio(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "RATIO_FROM_BYTES", 2**20)
    parts = opened(tmp_path, zipped({f"{n}.json": b" " * 2**19 for n in range(8)}))
    with pytest.raises(LoadError, match="as a bomb does"):
        parts[-1].content()
    assert len(parts) == 3  # two of half a MiB fit, and the problem


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lambda data: zipped({"a": data})])
def test_size_limit(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    with limits.using(Limits(max_bytes=100_000)), pytest.raises(LoadError, match="100,000 bytes"):
        opened(tmp_path, pack(TRACE))[0].content()


def test_member_limit(tmp_path: Path) -> None:
    with limits.using(Limits(max_members=2)):
        parts = opened(tmp_path, zipped({f"rank{n}": b"{}" for n in range(5)}))
    assert len(parts) == 2
    assert [(note.code, note.count) for note in parts[-1].notes] == [("archive-too-many", 3)]


def test_limits_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAIPROF_MAX_BYTES", "123")
    assert limits.current() == Limits(max_bytes=123)
    monkeypatch.setenv("MAIPROF_MAX_BYTES", "much")
    with pytest.raises(UsageError, match="MAIPROF_MAX_BYTES is 'much'"):
        limits.current()


def test_limits_of_a_call_end_with_it() -> None:
    with limits.using(Limits(max_bytes=5)), limits.using(None):
        assert limits.current().max_bytes == 5
    assert limits.current() == Limits()
