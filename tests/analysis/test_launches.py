"""Launches, their queue and operators that lag behind their work: by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import maiprof_nb
from maiprof_nb import NotAnswerableError
from maiprof_nb.analysis import launch_bound_operators, launch_queue, launch_rate
from maiprof_nb.analysis.launch_bound_operators import NO_OPERATOR
from maiprof_nb.analysis.launch_queue import DELAY, LAUNCHES, QUEUE
from maiprof_nb.analysis.launched_work import launched_work
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow
from tests import tiny_traces as tiny

US = 1000


def three() -> Session:
    """Launch calls of 2 us at 0, 10 and 40; work from 5, 25 and 41 (before that call returns)."""
    return tiny.session(
        tiny.operator("aten::add", 1000, 8),
        tiny.operator("aten::mm", 1009, 11),
        tiny.operator("aten::add", 1039, 8),
        tiny.launch(1, 1000),
        tiny.launch(2, 1010),
        tiny.launch(3, 1040),
        tiny.kernel(1005, 20, correlation=1),
        tiny.kernel(1025, 15, correlation=2),
        tiny.kernel(1041, 9, correlation=3),
    )


def series(session: Session, what: str, **more: object) -> np.ndarray:
    found = launch_queue(session, **more)
    return found[found["what"] == what]["value"].to_numpy(float)


def test_work_beside_its_launch() -> None:
    found = launched_work(three())
    assert (found["queue_delay_ns"] / US).tolist() == [3, 13, -1]
    assert (found["interval_ns"].iloc[:2] / US).tolist() == [10, 30]
    assert math.isnan(found["interval_ns"].iloc[2])
    assert found["first"].all()


def test_the_queue_over_time() -> None:
    """Waiting from 2 to 5 and from 12 to 25; nothing after, as the third starts at once."""
    bins = {"window": TimeWindow(0, 50 * US), "bins": 5}
    assert series(three(), QUEUE, **bins).tolist() == pytest.approx([0.3, 0.8, 0.5, 0, 0])
    per_s = [1 / 10e-6, 1 / 10e-6, 0, 0, 1 / 10e-6]
    assert series(three(), LAUNCHES, **bins).tolist() == pytest.approx(per_s)
    delay = series(three(), DELAY, **bins)
    assert delay[[0, 2, 4]].tolist() == [3 * US, 13 * US, -1 * US]
    assert np.isnan(delay[[1, 3]]).all()


def test_rates_of_a_device() -> None:
    lost = tiny.kernel(1060, 5, correlation=99)
    more = [tiny.kernel(1026 + i, 1, correlation=2, stream=9) for i in range(3)]
    events = [tiny.launch(1, 1000), tiny.launch(2, 1010), tiny.launch(3, 1040), lost, *more]
    work = [tiny.kernel(1005, 20, correlation=1), tiny.kernel(1041, 9, correlation=3)]
    (row,) = launch_rate(tiny.session(*events, *work)).to_dict("records")
    assert (row["work"], row["unlaunched"], row["launches"]) == (6, 1, 3)
    assert row["launches_per_s"] == pytest.approx(3 / 60e-6)  # first to last activity
    assert row["median_interval_ns"] == 20 * US  # 10 and 30


def test_operators_whose_work_is_done_before_the_next_launch() -> None:
    """`add` starts 20 us of work, 10 before the next launch; `mm` 15 us, 30 before it."""
    found = launch_bound_operators(three()).set_index("name")
    assert found.index.tolist() == ["aten::mm", "aten::add"]
    assert found.loc["aten::mm", "unfilled_ns"] == 15 * US
    assert found.loc["aten::add", "unfilled_ns"] == 0
    assert found["launch_bound"].tolist() == [True, False]
    assert found["short_share"].tolist() == [1, 0]  # of the launches with one after them
    assert found["launches"].tolist() == [1, 2]
    assert (found["device_ns"] / US).tolist() == [15, 29]


def test_operators_of_a_window() -> None:
    found = launch_bound_operators(three(), window=TimeWindow(30 * US, 60 * US))
    assert found["name"].tolist() == ["aten::add"]
    assert found["launches"].tolist() == [1]


def test_a_stall_is_no_launch() -> None:
    """5 ms until the next launch: somebody read a file."""
    session = tiny.session(
        tiny.launch(1, 1000),
        tiny.kernel(1005, 2, correlation=1),
        tiny.launch(2, 6000),
        tiny.kernel(6005, 2, correlation=2),
    )
    (row,) = launch_bound_operators(session).to_dict("records")
    assert row["name"] == NO_OPERATOR
    assert row["unfilled_ns"] == 0
    assert not row["launch_bound"]


def test_work_before_a_stall_is_not_compared() -> None:
    """`copy_` twice waits 3 ms for its copy, and once goes on after 200 us with 120 us of work.

    The median over all three would be 3 ms of work, beside "shorter than 200 us: 100 %".
    """
    session = tiny.session(
        *(tiny.operator("aten::copy_", at - 1, 20) for at in (1000, 5000, 9000)),
        tiny.operator("aten::mm", 9199, 20),
        *(tiny.launch(i, at) for i, at in enumerate((1000, 5000, 9000, 9200), start=1)),
        tiny.kernel(1005, 3000, correlation=1),
        tiny.kernel(5005, 3000, correlation=2),
        tiny.kernel(9005, 120, correlation=3),
        tiny.kernel(9205, 7, correlation=4),
    )
    found = launch_bound_operators(session).set_index("name")
    copies = found.loc["aten::copy_"]
    assert (copies["launches"], copies["compared"], copies["device_ns"]) == (3, 1, 6120 * US)
    assert (copies["median_work_ns"], copies["median_interval_ns"]) == (120 * US, 200 * US)
    assert (copies["short_share"], copies["unfilled_ns"]) == (1, 80 * US)
    assert copies["launch_bound"]
    assert found.loc["aten::mm", "compared"] == 0  # the last: nothing follows
    assert math.isnan(found.loc["aten::mm", "median_work_ns"])
    assert not found.loc["aten::mm", "launch_bound"]


def test_a_graph_is_one_launch(corpus: Path) -> None:
    """VLLM replays its decode pass as one graph: the file has 14 calls that start 434 pieces."""
    file = next((corpus / "kineto" / "tracelens-vllm-full-graph").glob("*.json.gz"))
    (row,) = launch_rate(maiprof_nb.load(file)).to_dict("records")
    assert (row["launches"], row["work"], row["unlaunched"]) == (14, 434, 0)
    assert launched_work(maiprof_nb.load(file)).groupby("launch").size().max() > 400


def test_without_device_work() -> None:
    session = tiny.session(tiny.operator("aten::mm", 1000, 5))
    assert launch_queue(session).empty
    with pytest.raises(NotAnswerableError):
        launch_bound_operators(session)
