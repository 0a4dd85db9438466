# ruff: noqa: S311 - dice of a test
"""Whatever a file holds, a reader gives a recording or an error of the project.

The mutations are the same in every run; MAIPROF_FUZZ_EXAMPLES sets how many a format gets.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import pickle
import random
import resource
import tarfile
import time
import zipfile
from functools import cache
from typing import Any

import pytest

from maiprof_nb.errors import MaiprofError
from maiprof_nb.loading import archives, lookalikes, memory_timeline, registry, snapshot
from maiprof_nb.loading.limits import Budget
from maiprof_nb.recording import Recording
from tests.loading.fuzz.mutations import mutated, rearranged, seeds

EXAMPLES = int(os.environ.get("MAIPROF_FUZZ_EXAMPLES", "60"))
SLOW_S = 5.0  # a file of 40 kB that takes as long would take hours at 400 MB
MEMORY_KB = 400 * 1024  # growth of the whole process over the run

found_seeds = cache(seeds)


@cache
def seeds_of(name: str) -> list[bytes]:
    known = next(one for one in registry.FORMATS if name == one.NAME)
    return [data for _, data in found_seeds() if known.sniff(data)]


@pytest.fixture(autouse=True)
def bounded_memory() -> Any:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEMORY_KB


def read(known: registry.Format, data: bytes) -> Recording | None:
    """The recording, or None where the project says why there is none."""
    began = time.perf_counter()
    try:
        found = known.read(data, "fuzz") if known.sniff(data) else None
    except MaiprofError:
        return None
    assert time.perf_counter() - began < SLOW_S
    return found


def check(known: registry.Format, data: bytes, number: int) -> bool:
    """True if it was read; the message of an error has the number and the file."""
    try:
        recording = read(known, data)
        if recording is None:
            return False
        assert recording.span.start_ns <= recording.span.end_ns
        assert all(note.text and note.count >= 0 for note in recording.notes)
    except Exception as problem:
        problem.add_note(f"example {number}: {data[:3000]!r}")
        raise
    return True


@pytest.mark.parametrize("known", registry.FORMATS, ids=lambda known: known.NAME)
def test_mutations(known: registry.Format) -> None:
    begun = seeds_of(known.NAME)
    if not begun:
        pytest.skip("no small file of this format among samples and corpus")
    kept = 0
    for number in range(EXAMPLES):
        dice = random.Random(f"{known.NAME} {number}")
        most = 1 if known in (snapshot, memory_timeline) else 4  # most changes break these
        data = mutated(dice.choice(begun), dice.choice(begun), dice, most)
        kept += check(known, data, number)
    assert kept > EXAMPLES // 10  # else nothing was tested


def test_snapshots_with_odd_values() -> None:
    contents = [pickle.loads(data) for data in seeds_of(snapshot.NAME)]
    kept = 0
    for number in range(5 * EXAMPLES):
        dice = random.Random(f"odd {number}")
        data = pickle.dumps(rearranged(dice.choice(contents), dice), protocol=4)
        kept += check(snapshot, data, number)
    assert kept > EXAMPLES


def test_nothing_known_raises_on_noise() -> None:
    everything = [data for _, data in found_seeds()]
    for number in range(EXAMPLES):
        dice = random.Random(f"noise {number}")
        data = mutated(dice.choice(everything), dice.choice(everything), dice)
        data = data[dice.randint(0, 50) :] if dice.random() < 0.5 else data
        lookalikes.reason(data)
        for known in registry.FORMATS:
            known.sniff(data)


def packed() -> dict[str, bytes]:
    """A few small files in each kind of wrapping."""
    files = [data for _, data in found_seeds()[:3]]
    zipped, tarred = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, data in enumerate(files):
            archive.writestr(f"run/rank{number}.json", data)
    with tarfile.open(fileobj=tarred, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for number, data in enumerate(files):
            entry = tarfile.TarInfo("long/" * 30 + f"rank{number}.json")
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    made = {"zip": zipped.getvalue(), "tar": tarred.getvalue()}
    for name, pack in (("gzip", gzip.compress), ("xz", lzma.compress), ("bzip2", bz2.compress)):
        made[name] = pack(files[0] * 2)
        made[f"tar-{name}"] = pack(made["tar"])
    return made


@pytest.mark.parametrize("kind", packed())
def test_archives(kind: str) -> None:
    whole = packed()[kind]
    for number in range(EXAMPLES):
        dice = random.Random(f"{kind} {number}")
        data = mutated(whole, whole, dice)
        began = time.perf_counter()
        for part in archives.parts(data, "fuzz", Budget("fuzz", len(data))):
            assert part.problem or isinstance(part.content(), bytes)
            assert part.name.isprintable()
        assert time.perf_counter() - began < SLOW_S
