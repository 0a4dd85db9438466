"""Calls, own and total time, and the device work of operators, on calls drawn by hand."""

from __future__ import annotations

import pytest

from maiprof_nb import TimeWindow, UsageError
from maiprof_nb.analysis.operator_ranking import (
    operator_calls,
    operator_ranking,
    rank_calls,
    recorded_groupings,
)
from tests import tiny_traces as tiny

US = 1000


def ranked(*events, **options):
    return operator_ranking(tiny.session(*events), **options).set_index("name")


def micros(found, column):
    return (found[column] / US).to_dict()


def test_own_and_total_time():
    found = ranked(
        tiny.operator("aten::linear", 1000, 50),
        tiny.operator("aten::addmm", 1010, 30),
        tiny.operator("aten::t", 1041, 2),
        tiny.launch(1, 1020, 5),
    )
    assert micros(found, "self_ns") == {
        "aten::addmm": 25,
        "aten::linear": 18,
        "cudaLaunchKernel": 5,
        "aten::t": 2,
    }
    assert micros(found, "total_ns")["aten::linear"] == 50
    assert found["self_share"].sum() == 1
    assert found.index.tolist() == ["aten::addmm", "aten::linear", "cudaLaunchKernel", "aten::t"]
    assert found["kind"].to_dict()["cudaLaunchKernel"] == "launch"


def test_threads_do_not_nest():
    found = ranked(
        tiny.operator("aten::mm", 1000, 50, tid=1), tiny.operator("aten::add", 1010, 10, tid=2)
    )
    assert micros(found, "self_ns") == {"aten::mm": 50, "aten::add": 10}


def test_calls_mean_least_and_most():
    found = ranked(
        *(tiny.operator("aten::mm", 1000 + 100 * i, dur) for i, dur in enumerate((1, 2, 9)))
    )
    (row,) = found.to_dict("records")
    assert (row["calls"], row["mean_ns"], row["min_ns"], row["max_ns"]) == (
        3,
        4 * US,
        1 * US,
        9 * US,
    )


def test_recursion_counts_once_in_outermost_time():
    """Here f calls g calls f, twice: three calls each would count one moment several times."""
    found = ranked(
        tiny.operator("f", 1000, 100),
        tiny.operator("g", 1010, 60),
        tiny.operator("f", 1020, 40),
        tiny.operator("g", 1080, 10),
    )
    assert found["calls"].to_dict() == {"f": 2, "g": 2}
    assert micros(found, "total_ns") == {"f": 140, "g": 70}
    assert micros(found, "outermost_ns") == {"f": 100, "g": 70}
    assert micros(found, "self_ns") == {"f": 70, "g": 30}


def test_an_only_callee_of_the_same_name_is_one_call_with_it():
    """As torch merges `aten::to` into its only child `aten::to`, and so on down."""
    found = ranked(
        tiny.operator("aten::to", 1000, 30),
        tiny.operator("aten::to", 1005, 20),
        tiny.operator("aten::to", 1006, 18),
        tiny.operator("aten::copy_", 1010, 4),
    )
    assert found["calls"].to_dict() == {"aten::to": 1, "aten::copy_": 1}
    assert micros(found, "total_ns") == {"aten::to": 30, "aten::copy_": 4}
    assert micros(found, "self_ns") == {"aten::to": 26, "aten::copy_": 4}


def test_a_callee_of_the_same_name_beside_another_stays():
    found = ranked(
        tiny.operator("aten::to", 1000, 30),
        tiny.operator("aten::to", 1005, 5),
        tiny.operator("aten::copy_", 1020, 4),
    )
    assert found["calls"].to_dict() == {"aten::to": 2, "aten::copy_": 1}


def test_device_time_by_external_id():
    found = ranked(
        tiny.operator("aten::linear", 1000, 50, **{"External id": 1}),
        tiny.operator("aten::addmm", 1010, 30, **{"External id": 2}),
        tiny.kernel(1100, 40, **{"External id": 2}),
        tiny.kernel(1140, 5, **{"External id": 1}),
        tiny.kernel(1150, 99, **{"External id": 12345}),
    )
    assert micros(found, "device_self_ns") == {"aten::addmm": 40, "aten::linear": 5}
    assert micros(found, "device_total_ns") == {"aten::addmm": 40, "aten::linear": 45}
    assert found["device_share"].to_dict() == pytest.approx(
        {"aten::addmm": 40 / 45, "aten::linear": 5 / 45}
    )


def test_device_time_by_correlation_where_work_has_no_external_id():
    """ROCm kernels often have none: the operator round the launch call owns the work."""
    found = ranked(
        tiny.operator("aten::linear", 1000, 50),
        tiny.operator("aten::addmm", 1010, 30),
        tiny.launch(7, 1020),
        tiny.kernel(1100, 40, correlation=7),
        tiny.launch(8, 1200),  # in no operator
        tiny.kernel(1210, 6, correlation=8),
    )
    assert micros(found, "device_self_ns") == {
        "aten::addmm": 40,
        "aten::linear": 0,
        "cudaLaunchKernel": 6,
    }
    assert micros(found, "device_total_ns")["aten::linear"] == 40


def test_hta_61_any_call_with_a_correlation_is_a_launch():
    found = ranked(
        tiny.operator("aten::mm", 1000, 50),
        tiny.launch(1, 1010, name="cudaLaunchKernelExC"),
        tiny.launch(2, 1020, name="hipExtModuleLaunchKernel"),
        tiny.kernel(1100, 40, correlation=1),
        tiny.kernel(1140, 2, correlation=2),
    )
    assert micros(found, "device_self_ns")["aten::mm"] == 42


def test_all_kernels_of_a_graph_launch():
    """A graph gives all its kernels one correlation id: the join is many to one."""
    found = ranked(
        tiny.operator("decode", 1000, 50),
        tiny.launch(5, 1010, name="cudaGraphLaunch"),
        *(tiny.kernel(1100 + 10 * i, 3, correlation=5) for i in range(200)),
    )
    assert micros(found, "device_self_ns")["decode"] == 600
    assert found["calls"]["decode"] == 1


def test_a_correlation_that_two_calls_carry_counts_once():
    found = ranked(
        tiny.operator("aten::mm", 1000, 50),
        tiny.launch(5, 1010),
        tiny.launch(5, 1020, name="cuLaunchKernel"),
        tiny.kernel(1100, 10, correlation=5),
    )
    assert found["device_self_ns"].sum() == 10 * US


def test_device_time_of_merged_callees_is_kept():
    found = ranked(
        tiny.operator("aten::to", 1000, 30, **{"External id": 1}),
        tiny.operator("aten::to", 1005, 20, **{"External id": 2}),
        tiny.kernel(1100, 8, **{"External id": 2}),
    )
    assert micros(found, "device_self_ns") == {"aten::to": 8}


def test_same_external_id_in_two_ranks():
    call = [
        tiny.operator("aten::mm", 1000, 30, **{"External id": 1}),
        tiny.kernel(1100, 8, **{"External id": 1}),
    ]
    found = operator_ranking(tiny.ranks(call, call)).set_index("name")
    assert micros(found, "device_self_ns") == {"aten::mm": 16}
    assert found["calls"].to_dict() == {"aten::mm": 2}


def test_steps_are_one_group():
    found = ranked(tiny.step(1, 1000, 10), tiny.step(2, 1010, 12))
    assert found["calls"].to_dict() == {"ProfilerStep*": 2}
    assert found["kind"].tolist() == ["range"]


def test_by_shapes():
    session = tiny.session(
        tiny.operator("aten::mm", 1000, 10, **{"Input Dims": [[2, 3], [3, 4]]}),
        tiny.operator("aten::mm", 1020, 30, **{"Input Dims": [[8, 3], [3, 4]]}),
        tiny.operator("aten::mm", 1060, 10, **{"Input Dims": [[2, 3], [3, 4]]}),
        tiny.operator("aten::mm", 1080, 1),
    )
    found = operator_ranking(session, by="shapes")
    assert found["calls"].tolist() == [1, 2, 1]
    assert (found["self_ns"] / US).tolist() == [30, 20, 1]
    assert found["input_dims"].isna().tolist() == [False, False, True]
    with pytest.raises(UsageError, match="grouped by colour"):
        operator_ranking(session, by="colour")


def test_utility_operators_are_left_out():
    found = ranked(
        tiny.annotation("mine", 1000, 20),
        tiny.operator("profiler::_record_function_enter_new", 1001, 2),
        tiny.operator("aten::is_leaf", 1005, 2),
    )
    assert micros(found, "self_ns") == {"mine": 20}


def test_python_functions_take_their_time_from_the_caller():
    events = [
        tiny.annotation("mine", 1000, 100),
        tiny.python("a.py(3): f", 1010, 60),
        tiny.operator("aten::mm", 1020, 30),
    ]
    assert micros(ranked(*events), "self_ns") == {"mine": 70, "aten::mm": 30}
    found = ranked(*events, with_python=True)
    assert micros(found, "self_ns") == {"mine": 40, "a.py(3): f": 30, "aten::mm": 30}
    assert found.loc["a.py(3): f", "kind"] == "python"


def test_rows_of_the_call_tree():
    calls = operator_calls(
        tiny.session(
            tiny.operator("inner", 1010, 30), tiny.operator("outer", 1000, 50), tiny.launch(1, 1020)
        )
    )
    names = calls["name"].astype("str").tolist()
    parent = [names[p] if p >= 0 else None for p in calls["parent"]]
    assert dict(zip(names, parent, strict=True)) == {
        "outer": None,
        "inner": "outer",
        "cudaLaunchKernel": "inner",
    }
    assert rank_calls(calls[calls["name"] == "inner"])["calls"].tolist() == [1]


def test_a_selected_window_counts_what_overlaps_it():
    session = tiny.session(*(tiny.operator("aten::mm", 1000 + 20 * i, 10) for i in range(5)))
    part = session.select(window=TimeWindow(30 * US, 65 * US))  # the first ends as it begins
    assert operator_ranking(part)["calls"].tolist() == [2]
    assert operator_ranking(session)["calls"].tolist() == [5]


def test_no_operators():
    assert operator_ranking(tiny.session(tiny.kernel(1, 1))).empty
    assert operator_ranking(tiny.session()).empty


def test_by_stack_and_module_from_python_frames():
    """The innermost function that is the user's, and the innermost module, round each call."""
    session = tiny.session(
        tiny.python("train.py(1): main", 1000, 200),
        tiny.python("nn.Module: Net_0", 1010, 80),
        tiny.python("model.py(7): forward", 1012, 70),
        tiny.python("nn.Module: Linear_1", 1015, 40),
        tiny.python("torch/nn/modules/linear.py(114): forward", 1016, 38),
        tiny.operator("aten::mm", 1020, 30),
        tiny.launch(1, 1030),
        tiny.operator("aten::mm", 1060, 10),
        tiny.operator("aten::mm", 1100, 5),
        tiny.operator("aten::mm", 1110, 4, tid=tiny.AUTOGRAD),
    )
    by_line = operator_ranking(session, by="stack").astype({"user_line": "object"})
    counts = by_line.fillna({"user_line": ""}).set_index(["name", "user_line"])["calls"]
    assert counts.to_dict() == {
        ("aten::mm", "model.py(7): forward"): 2,
        ("aten::mm", "train.py(1): main"): 1,
        ("aten::mm", ""): 1,
        ("cudaLaunchKernel", "model.py(7): forward"): 1,
    }
    by_module = operator_ranking(session, by="module")
    mm = by_module[by_module["name"] == "aten::mm"]
    assert mm["module"].astype("object").fillna("").tolist() == ["Linear_1", "Net_0", ""]
    assert (mm["self_ns"] / US).tolist() == [28, 10, 9]  # the launch takes 2 of the 30
    assert recorded_groupings(session) == ["name", "shapes", "stack", "module"]


def test_by_stack_of_old_traces():
    """Traces before 2022 keep the stack in the operator's arguments, innermost first."""
    stack = {"Call stack": "torch/nn/functional.py(1): linear;model.py(7): forward;train.py(1): f"}
    session = tiny.session(
        tiny.operator("aten::linear", 1000, 30, **stack),
        tiny.operator("aten::mm", 1010, 10),  # without one: that of its caller
        tiny.operator("aten::mm", 1050, 10),
    )
    found = operator_ranking(session, by="stack")
    lines = found.set_index("name")["user_line"]
    assert lines["aten::linear"] == "model.py(7): forward"
    assert sorted(lines["aten::mm"].astype("object").fillna("")) == ["", "model.py(7): forward"]
    assert recorded_groupings(session) == ["name", "shapes", "stack"]


def test_groupings_that_were_not_recorded():
    session = tiny.session(tiny.operator("aten::mm", 1000, 10))
    assert recorded_groupings(session) == ["name", "shapes"]
    for by, column in (("stack", "user_line"), ("module", "module")):
        found = operator_ranking(session, by=by)
        assert found["calls"].tolist() == [1]
        assert found[column].isna().all()
        assert operator_ranking(tiny.session(), by=by).empty
