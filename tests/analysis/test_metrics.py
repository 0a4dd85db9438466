"""Samples: what a picture shows of them, and their figures over a window."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

import maiprof_nb
from maiprof_nb import TimeWindow
from maiprof_nb.analysis.metrics import metric_series, metric_summary

S = 1_000_000_000


@pytest.fixture
def sampled(tmp_path):
    """A session of utilisations sampled every second (or at `at`, in s) on one GPU."""

    def make(values, at=None):
        start = datetime(2026, 3, 1, 12, tzinfo=UTC)
        seconds = at or range(len(values))
        rows = [
            f"{(start + timedelta(seconds=t)).strftime('%Y/%m/%d %H:%M:%S.%f')[:-3]}, 0, {value} %"
            for t, value in zip(seconds, values, strict=True)
        ]
        path = tmp_path / "gpu.csv"
        path.write_text("timestamp, index, utilization.gpu [%]\n" + "\n".join(rows) + "\n")
        return maiprof_nb.load(path)

    return make


def series(session, **options):
    found = metric_series(session, **options)
    return list(zip((found["ts_ns"] // S).tolist(), found["value"].tolist(), strict=True))


def test_all_samples_where_there_is_room(sampled):
    assert series(sampled([5, 7, 6])) == [(0, 5), (1, 7), (2, 6)]


def test_extremes_survive_a_narrow_picture(sampled):
    values = [50] * 200
    values[77], values[133] = 99, 1
    found = series(sampled(values), bins=4)
    assert len(found) <= 2 * 4
    assert (77, 99) in found
    assert (133, 1) in found
    assert [ts for ts, _ in found] == sorted(ts for ts, _ in found)


@pytest.mark.parametrize("bins", [1, 3, 10, 64])
def test_bounded(sampled, bins):
    random = np.random.default_rng(bins)
    found = series(sampled(random.integers(0, 100, 300).tolist()), bins=bins)
    assert len(found) <= 2 * bins


def test_the_nearest_samples_outside_let_the_line_enter_and_leave(sampled):
    session = sampled([0, 90, 10, 20, 30, 40, 100, 1])
    found = series(session, window=TimeWindow(2 * S + 1, 4 * S + 1))
    assert found == [(2, 10), (3, 20), (4, 30), (5, 40)]


def test_a_window_between_two_samples(sampled):
    session = sampled([10, 30])
    assert series(session, window=TimeWindow(S // 4, S // 2)) == [(0, 10), (1, 30)]


def test_figures(sampled):
    (row,) = metric_summary(sampled([0, 10, 20, 30, 40])).to_dict("records")
    assert row["counter"] == "utilization.gpu"
    assert row["unit"] == "%"
    assert (row["samples"], row["median"], row["maximum"]) == (5, 20, 40)
    assert row["p95"] == 38


def test_the_mean_is_over_time(sampled):
    """A sample is the mean since the one before: 4 s of 100 and 1 s of 0."""
    session = sampled([50, 100, 0], at=[0, 4, 5])
    assert metric_summary(session)["mean"].tolist() == [80]


def test_the_mean_counts_only_the_time_inside(sampled):
    session = sampled([0, 100, 0, 100])
    (row,) = metric_summary(session, window=TimeWindow(S // 2, 2 * S)).to_dict("records")
    assert row["mean"] == pytest.approx(100 / 3)  # half a second of 100, one of 0
    assert row["samples"] == 2


def test_the_mean_of_a_single_sample(sampled):
    assert metric_summary(sampled([42]))["mean"].tolist() == [42]


def test_no_sample_in_the_window(sampled):
    session = sampled([1, 2, 3])
    assert metric_summary(session, window=TimeWindow(10 * S, 20 * S)).empty


def test_no_metrics():
    session = maiprof_nb.Session([])
    assert metric_summary(session).empty
    assert metric_series(session).empty
