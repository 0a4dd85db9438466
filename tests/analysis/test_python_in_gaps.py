"""What the host does while every device is idle."""

from __future__ import annotations

import pytest

from maiprof_nb import NotAnswerableError
from maiprof_nb.analysis.python_in_gaps import functions_in_gaps
from tests import tiny_traces as tiny

US = 1000
WORKER = 7


def by_name(session):
    return functions_in_gaps(session).set_index("name")


def test_own_time_and_time_with_callees():
    """The device works 0-10 and 90-100 of a step of 100."""
    found = by_name(
        tiny.session(
            tiny.step(1, 1000, 100),
            tiny.kernel(1000, 10),
            tiny.kernel(1090, 10),
            tiny.python("a.py(1): outer", 1005, 60),  # 10-65 in the gap
            tiny.python("a.py(9): inner", 1020, 30),  # 20-50
            tiny.operator("aten::cat", 1040, 5),
            tiny.launch(1, 1085, 10),  # 85-90 in the gap
        )
    )
    assert (found["self_in_gaps_ns"] / US).to_dict() == {
        "a.py(1): outer": 25,
        "a.py(9): inner": 25,
        "aten::cat": 5,
        "cudaLaunchKernel": 5,
    }
    assert found.loc["a.py(1): outer", "total_in_gaps_ns"] == 55 * US
    assert found.loc["a.py(9): inner", "kind"] == "python"
    assert found.loc["aten::cat", "kind"] == "operator"
    assert found.loc["cudaLaunchKernel", "kind"] == "launch"
    assert found.loc["a.py(1): outer", "idle_share"] == pytest.approx(25 / 80)


def test_several_threads_in_one_function():
    found = by_name(
        tiny.session(
            tiny.step(1, 1000, 100),
            tiny.kernel(1000, 10),
            *(tiny.python("a.py(5): decode", 1010, 90, tid=10 + i) for i in range(4)),
        )
    )
    (row,) = found.to_dict("records")
    assert (row["threads"], row["calls"], row["idle_share"]) == (4, 4, 4.0)


def test_threads_of_different_ranks_are_different():
    call = [tiny.step(1, 1000, 100), tiny.kernel(1000, 10), tiny.python("a.py(5): f", 1010, 90)]
    assert by_name(tiny.ranks(call, call))["threads"].tolist() == [2]


def test_time_on_threads_that_launch():
    found = by_name(
        tiny.session(
            tiny.step(1, 1000, 100),
            tiny.kernel(1000, 10),
            tiny.python("a.py(1): loop", 1010, 80),
            tiny.launch(1, 1092),
            tiny.python("a.py(9): worker", 1010, 90, tid=WORKER),
        )
    )
    assert (found["loop_in_gaps_ns"] / US).to_dict() == {
        "a.py(1): loop": 80,
        "a.py(9): worker": 0,
        "cudaLaunchKernel": 2,
    }


def test_calls_that_touch_no_gap_are_left_out():
    found = by_name(
        tiny.session(
            tiny.step(1, 1000, 100),
            tiny.kernel(1000, 50),
            tiny.python("a.py(1): busy", 1010, 20),
            tiny.python("a.py(2): idle", 1050, 20),
            tiny.python("a.py(2): idle", 1020, 20),
        )
    )
    assert found["calls"].to_dict() == {"a.py(2): idle": 1}


def test_only_time_in_which_all_devices_are_idle_counts():
    found = by_name(
        tiny.session(
            tiny.step(1, 1000, 100),
            tiny.kernel(1000, 60, device=0),
            tiny.kernel(1070, 30, device=1),
            tiny.python("a.py(1): f", 1000, 100),
        )
    )
    assert found["self_in_gaps_ns"].tolist() == [10 * US]
    assert found["idle_share"].tolist() == [1.0]


def test_a_device_that_never_rests_leaves_no_common_idle_time():
    found = by_name(
        tiny.session(
            tiny.step(1, 1000, 100),
            tiny.kernel(1000, 100, device=0),
            tiny.kernel(1000, 10, device=1),
            tiny.python("a.py(1): f", 1000, 100),
        )
    )
    assert found.empty


def test_callees_that_overlap_make_no_negative_time():
    found = by_name(
        tiny.session(
            tiny.step(1, 1000, 100),
            tiny.kernel(1099, 1),
            tiny.python("a.py(1): outer", 1000, 60),
            tiny.python("a.py(2): one", 1000, 50),
            tiny.python("a.py(3): other", 1010, 50),
        )
    )
    assert found["self_in_gaps_ns"].min() == 0


def test_marks_of_steps_are_no_function():
    found = by_name(
        tiny.session(
            tiny.step(1, 1000, 100), tiny.kernel(1099, 1), tiny.annotation("## load ##", 1000, 50)
        )
    )
    assert found["kind"].to_dict() == {"## load ##": "range"}


def test_without_host_events():
    assert functions_in_gaps(tiny.session(tiny.kernel(1000, 1), tiny.kernel(1010, 1))).empty


def test_without_device_work():
    with pytest.raises(NotAnswerableError):
        functions_in_gaps(tiny.session(tiny.operator("op", 1, 1)))
