"""Bins add up to what happened, whatever the width of the picture."""

from __future__ import annotations

import numpy as np
import pytest

from maiprof_nb import TimeWindow
from maiprof_nb.analysis.device_activity import activities
from maiprof_nb.analysis.utilisation import bin_edges, instances, utilisation
from tests import tiny_traces as tiny

US = 1000


def random_session(seed):
    random = np.random.default_rng(seed)
    at = random.uniform(1000, 2000, 80).round(3)
    events = [tiny.operator(f"op{i % 5}", t, 3.7, tid=int(i % 3)) for i, t in enumerate(at)]
    events += [tiny.kernel(t, 2.345, device=int(i % 2)) for i, t in enumerate(at)]
    return tiny.session(*events)


@pytest.mark.parametrize("bins", [1, 2, 7, 1000, 1001])
@pytest.mark.parametrize("seed", range(4))
def test_bins_integrate_to_the_union(seed, bins):
    session = random_session(seed)
    found = utilisation(session, bins=bins)
    busy = found[found["what"] == "gpu"].assign(ns=lambda f: f["value"] * f["dur_ns"])
    for one in activities(session):
        mine = busy[busy["device"] == one.device]
        assert mine["ns"].sum() == pytest.approx(one.busy.length_ns, abs=1e-3)
        assert mine["ns"].round().sum() == one.busy.length_ns
        assert mine["value"].between(0, 1).all()


def test_host_bins_count_threads():
    session = tiny.session(
        tiny.operator("a", 1000, 100, tid=1),
        tiny.operator("inner", 1010, 50, tid=1),  # inside: still one thread
        tiny.operator("b", 1050, 100, tid=2),
        tiny.python("f.py(1): wait", 1000, 150, tid=3),
        tiny.step(1, 1000, 150),
    )
    found = utilisation(session, bins=3).set_index("what")
    assert found.loc["framework", "value"].tolist() == [1, 2, 1]
    assert found.loc["recorded", "value"].tolist() == [2, 3, 2]
    assert found.loc["framework", "ts_ns"].tolist() == [0, 50 * US, 100 * US]


def test_a_window_shows_only_itself():
    session = tiny.session(tiny.kernel(1000, 10), tiny.kernel(1090, 10))
    found = utilisation(session, window=TimeWindow(5 * US, 95 * US), bins=9)
    assert found["value"].tolist() == [0.5, 0, 0, 0, 0, 0, 0, 0, 0.5]
    assert int(found["dur_ns"].sum()) == 90 * US


@pytest.mark.parametrize(
    ("window", "bins", "count"),
    [
        ((0, 10), 3, 3),
        ((0, 10), 1000, 10),  # never shorter than 1 ns
        ((5, 5), 10, 1),
        ((-7, 8 * 10**18), 4096, 4096),
        ((0, 1), 0, 1),
    ],
)
def test_edges_cover_the_window(window, bins, count):
    edges = bin_edges(TimeWindow(*window), bins)
    assert len(edges) == count + 1
    assert (edges[0], edges[-1]) == window
    widths = np.diff(edges)
    assert (widths >= 0).all()
    assert widths.max() - widths.min() <= 1


def test_bounded_whatever_the_trace():
    session = random_session(0)
    assert len(utilisation(session, bins=50)) == 4 * 50  # two devices, two host series


def test_no_events_no_series():
    assert len(utilisation(tiny.session())) == 0


def test_every_rank_has_its_series():
    session = tiny.ranks(
        [tiny.operator("op", 1, 1), tiny.kernel(1, 1)], [tiny.operator("op", 1, 1)]
    )
    assert utilisation(session, bins=1)["series"].tolist() == [
        "rank 0, GPU 0",
        "rank 0 host",
        "rank 0 host",
        "rank 1 host",
        "rank 1 host",
    ]


def marks(session, name, **options):
    found = instances(session, name, **options)
    return [(row.ts_ns // US, row.end_ns // US, row.calls) for row in found.itertuples()]


def test_instances_of_an_operator():
    session = tiny.session(
        tiny.operator("mm", 1000, 10),
        tiny.operator("mm", 1050, 10),
        tiny.operator("other", 1020, 10),
        tiny.annotation("mm", 1080, 5),
    )
    assert marks(session, "mm") == [(0, 10, 1), (50, 60, 1), (80, 85, 1)]
    assert marks(session, "nothing") == []


def test_recursion_is_one_mark():
    session = tiny.session(
        tiny.operator("f", 1000, 100), tiny.operator("f", 1010, 20), tiny.operator("f", 1060, 10)
    )
    assert marks(session, "f") == [(0, 100, 3)]


def test_instances_of_every_step():
    session = tiny.session(tiny.step(1, 1000, 10), tiny.step(2, 1020, 10), tiny.launch(1, 1001))
    assert marks(session, "ProfilerStep*") == [(0, 10, 1), (20, 30, 1)]
    assert marks(session, "cudaLaunchKernel") == [(1, 3, 1)]


def test_instances_in_a_window():
    session = tiny.session(*(tiny.operator("f", 1000 + 10 * i, 2) for i in range(10)))
    found = marks(session, "f", window=TimeWindow(21 * US, 51 * US))
    assert found == [(20, 22, 1), (30, 32, 1), (40, 42, 1), (50, 52, 1)]


@pytest.mark.parametrize("limit", [1, 10, 77])
def test_never_more_marks_than_the_limit_and_no_call_lost(limit):
    random = np.random.default_rng(1)
    at = np.sort(random.uniform(0, 100_000, 3000)).round(3)
    session = tiny.session(*(tiny.operator("f", t, 1) for t in at))
    found = instances(session, "f", limit=limit)
    assert 1 <= len(found) <= limit
    assert found["calls"].sum() == 3000
    assert (found["ts_ns"].to_numpy()[1:] > found["end_ns"].to_numpy()[:-1]).all()
