"""torch.profiler's memory timelines, and snapshots made of a profile: real ones, made here."""

from __future__ import annotations

import gzip
import json
import pickle
import time
import warnings

import numpy as np
import pytest

import maiprof_nb
from maiprof_nb.analysis.active_memory import HOST, live_in, memory_devices, memory_log
from maiprof_nb.analysis.allocator_state import allocator_state
from maiprof_nb.analysis.memory_categories import categories_of
from maiprof_nb.errors import LoadError, NotAnswerableError
from maiprof_nb.loading import registry
from maiprof_nb.loading.memory_timeline import CATEGORIES
from maiprof_nb.trust import checks

RAW, SUMS, GZIPPED, PICKLE = "t.raw.json.gz", "t.json", "t.json.gz", "profile.pickle"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder of one real profile of three training steps on the CPU, exported in every way."""
    torch = pytest.importorskip("torch")
    viz = pytest.importorskip("torch.cuda._memory_viz")
    folder = tmp_path_factory.mktemp("timeline")
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    optimizer = torch.optim.Adam(model.parameters())
    with (
        warnings.catch_warnings(),
        torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU],
            profile_memory=True, record_shapes=True, with_stack=True,
        ) as profile,
    ):  # fmt: skip
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(32, 64)).sum().backward()
            optimizer.step()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the export is deprecated
        for name in (RAW, SUMS, GZIPPED):
            profile.export_memory_timeline(str(folder / name), device="cpu")
        content = viz._profile_to_snapshot(profile)
    (folder / PICKLE).write_bytes(pickle.dumps(content))
    return folder


def test_raw_events_add_up_as_written(made):
    rows = json.loads(gzip.decompress((made / RAW).read_bytes()))
    session = maiprof_nb.load(made / RAW)
    log = memory_log(session)
    before = [row[0] < 0 for row in rows].count(True)
    sums = np.cumsum([row[2] for row in rows])
    assert log.allocated_bytes.tolist() == sums[max(before - 1, 0) :].tolist()
    assert (log.device.kind, log.device.axis) == ("timeline", "time")
    assert abs(session.recordings[0].clock.epoch_ns / 1e9 - time.time()) < 3600
    by_category = dict.fromkeys(CATEGORIES, 0)
    for row in rows:
        by_category[CATEGORIES[row[3]]] += row[2]
    held = live_in(log, len(log.ts_ns) - 1).set_index("label")["size_bytes"]
    assert held.to_dict() == {name: size for name, size in by_category.items() if size}
    assert _stated(log) == set(CATEGORIES)


def test_sums_are_those_of_the_file_at_every_point(made):
    times, sums = json.loads((made / SUMS).read_bytes())
    log = memory_log(maiprof_nb.load(made / SUMS))
    assert [log.allocated_bytes[-1], log.allocated_bytes.max()] == (
        [sum(sums[-1]), max(map(sum, sums))]
    )
    epoch_us = times[0]
    for time_us, row in list(zip(times, sums, strict=True))[1::20]:
        state = int(log.states_at((time_us - epoch_us) * 1000))
        held = live_in(log, state).set_index("label")["size_bytes"].to_dict()
        same = [s for t, s in zip(times, sums, strict=True) if t == time_us][-1]
        assert held == {n: size for n, size in zip(CATEGORIES, same[1:], strict=True) if size}, row
    zipped = memory_log(maiprof_nb.load(made / GZIPPED))
    assert zipped.allocated_bytes.tolist() == log.allocated_bytes.tolist()
    raw = memory_log(maiprof_nb.load(made / RAW))
    assert raw.allocated_bytes[-1] == log.allocated_bytes[-1]
    assert raw.allocated_bytes.max() >= log.allocated_bytes.max()


def _stated(log):
    found = categories_of(log)
    assert found["confidence"].isin([0.0, 1.0]).all()
    return set(found["category"])


def test_a_public_raw_timeline(corpus):
    """HTA's own test file, of a GPU job: the largest running sum, by hand."""
    path = corpus / "kineto" / "hta-memory-timeline" / "memory_timeline.raw.gz"
    rows = json.loads(gzip.decompress(path.read_bytes()))
    log = memory_log(maiprof_nb.load(path))
    sums = np.cumsum([row[2] for row in rows])
    before = [row[0] < 0 for row in rows].count(True)
    assert log.allocated_bytes.max() == sums[before - 1 :].max() == 3_082_832_104
    assert log.allocated_bytes.min() == sums[before - 1 :].min()
    change = np.zeros(len(log.ts_ns) + 1, dtype=np.int64)
    lives = log.allocations
    np.add.at(change, lives["first_state"], lives["size_bytes"])
    np.subtract.at(change, lives["end_state"], lives["size_bytes"])
    assert np.cumsum(change)[:-1].tolist() == log.allocated_bytes.tolist()  # lives make the curve


def test_a_snapshot_made_of_a_profile(made):
    """Sizes are bytes as asked for: no allocator of a device rounded them."""
    content = pickle.loads((made / PICKLE).read_bytes())
    session = maiprof_nb.load(made / PICKLE)
    (device,) = memory_devices(session)
    assert (device.device_type, device.axis) == (HOST, "order")
    log = memory_log(session)
    total = sum(
        block["size"]
        for segment in content["segments"]
        for block in segment["blocks"]
        if block["state"].startswith("active")
    )
    totals = [total]
    for row in reversed(content["device_traces"][0]):
        total += {"alloc": -row["size"], "free_completed": row["size"]}.get(row["action"], 0)
        totals.append(total)
    assert log.allocated_bytes[-1] == totals[0]
    assert log.allocated_bytes.max() == max(totals)
    assert log.allocated_bytes[0] == totals[-1]
    assert log.reserved_bytes is None
    assert [note.code for _, note in session.notes].count("made-of-a-profile") == 1
    with pytest.raises(NotAnswerableError):
        allocator_state(session, 0)


def test_checks_answer_where_no_rule_is_about_the_kind(made):
    assert not checks(maiprof_nb.load(made / RAW)).empty


@pytest.mark.parametrize(
    "data",
    [
        b"[[-1, 1, 10, 7], [5, 9, 10, 7]]",
        b"[[-1, 1, 10, 7], [5, 1, 10, 70]]",
        b"[[-1, 1, 10, 7], [5, 1]]",
        b"[[-1, 1, 10, 7], [1795989562099782447, 3, 9999999999999999999999, 7]]",
        b"[[-1, 1, 10, 7], ",
        b"[[1795989561896883], []]",
        b"[[1795989561896883], [[0, 1]]]",
        b"[[1795989561896883], [[0, 0, 0, 0, 0, 0, 0, 0, 0]]]",
        b"[[1795989561896883, null], [[0, 1, 0, 0, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0, 0, 0]]]",
        b"[[1795989561896883], 5]",
        b"[[1795989561896883]]",
    ],
)
def test_what_is_damaged_is_refused(data):
    with pytest.raises(LoadError, match=r"memory timeline|list of lists"):
        registry.read(data, "t.raw.json")
