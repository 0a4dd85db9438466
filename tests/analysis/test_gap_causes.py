"""Causes of gaps on hand-drawn traces: every share is read off the drawing."""

from __future__ import annotations

from pathlib import Path

import pytest

import maiprof_nb
from maiprof_nb.analysis.gap_causes import CAUSES, gap_causes, idle_by_cause
from tests.tiny_traces import AUTOGRAD, annotation, kernel, launch, operator, python, session

COLUMNS = [f"{cause.replace(' ', '_').replace('-', '_')}_ns" for cause in CAUSES]


def only_gap(*between: dict) -> dict:
    """The one gap from 1100 to 1200 us, whose end was launched by the main thread at 1195."""
    made = session(
        launch(1, 1000), kernel(1010, 90, correlation=1),
        *between,
        launch(2, 1195), kernel(1200, 50, correlation=2),
    )  # fmt: skip
    (row,) = gap_causes(made).to_dict("records")
    assert (row["ts_ns"], row["dur_ns"]) == (100_000, 100_000)
    assert sum(row[column] for column in COLUMNS) == row["dur_ns"]
    return row


@pytest.mark.parametrize(
    ("between", "cause", "column", "ns"),
    [
        ([annotation("enumerate(DataLoader)#_It.__next__", 1105, 85)], "input", "input_ns", 85_000),
        ([python("job/table.py(3): sharded_iterrows", 1101, 90)], "input", "input_ns", 90_000),
        ([launch(0, 1110, 70, name="cudaMalloc")], "allocator", "allocator_ns", 70_000),
        ([annotation("gc", 1120, 60)], "garbage collection", "garbage_collection_ns", 60_000),
        ([operator("c10d::allreduce_", 1100, 80)], "collective wait", "collective_wait_ns", 80_000),
        (
            [python("torch/_dynamo/convert_frame.py(9): compile", 1100, 95)],
            "compilation", "compilation_ns", 95_000,
        ),
        (  # a compiled region that runs: these frames are round every call of it
            [
                python("torch/_dynamo/eval_frame.py(1039): _fn", 1100, 95),
                python("torch/_inductor/output_code.py(590): __call__", 1101, 93),
                python("cache/ov/cov.py(2533): call", 1102, 91),
            ],
            "Python", "Python_ns", 95_000,
        ),
        (
            [operator("TorchDynamo Cache Lookup", 1100, 90)],
            "launch-bound", "launch_bound_ns", 92_000,
        ),
        ([operator("aten::mm", 1100, 90)], "launch-bound", "launch_bound_ns", 92_000),
        ([python("train.py(7): log", 1100, 90)], "Python", "Python_ns", 90_000),
        ([], "unrecorded", "unrecorded_ns", 98_000),
    ],
)  # fmt: skip
def test_each_cause(between: list[dict], cause: str, column: str, ns: int) -> None:
    row = only_gap(*between)
    assert row["cause"] == cause
    assert row[column] == ns  # the launch at 1195 adds its 2 us to launch-bound


def test_innermost_name_wins_and_parts_sum() -> None:
    row = only_gap(
        python("train.py(1): main", 1000, 199),
        annotation("enumerate(DataLoader)#_It.__next__", 1110, 50),
        operator("aten::copy_", 1120, 10),  # inside the loading: input
        operator("aten::mm", 1170, 20),
    )
    assert row["input_ns"] == 50_000
    assert row["launch_bound_ns"] == 22_000
    assert row["Python_ns"] == 27_000  # 1100-1110, 1160-1170, 1190-1195 and 1197-1199
    assert row["unrecorded_ns"] == 1_000  # 1199-1200


def test_nothing_above_half_is_mixed() -> None:
    row = only_gap(
        annotation("enumerate(DataLoader)#_It.__next__", 1100, 40), operator("aten::mm", 1140, 40)
    )
    assert (row["cause"], row["share"]) == ("mixed", pytest.approx(0.42))


def test_framework_time_after_a_wait_is_the_waits() -> None:
    row = only_gap(
        launch(0, 1050, 52, name="cudaStreamSynchronize"), operator("aten::mm", 1102, 90)
    )
    assert row["after_sync"]
    assert row["cause"] == "synchronisation"
    assert row["synchronisation_ns"] == 2_000 + 90_000 + 2_000


def test_a_wait_that_ended_before_is_not_the_cause() -> None:
    row = only_gap(
        launch(0, 1050, 20, name="cudaStreamSynchronize"), operator("aten::mm", 1102, 90)
    )
    assert not row["after_sync"]
    assert row["cause"] == "launch-bound"


def test_only_the_launching_thread_counts() -> None:
    row = only_gap(operator("aten::mm", 1100, 90, tid=AUTOGRAD))
    assert row["cause"] == "unrecorded"
    assert row["tid"] == "500"


def test_a_kernel_without_launch_leaves_the_gap_unrecorded() -> None:
    made = session(kernel(1000, 10), kernel(1100, 10), operator("aten::mm", 1010, 90))
    (row,) = gap_causes(made).to_dict("records")
    assert row["cause"] == "unrecorded"
    assert row["unrecorded_ns"] == 90_000


def test_work_that_was_launched_before_is_no_matter_of_the_host() -> None:
    """Nodes of one graph: the host waits, or does something else, and delays nothing."""
    made = session(
        launch(1, 1000, 5, name="cudaGraphLaunch"), operator("aten::mm", 1100, 95),
        kernel(1010, 90, correlation=1), kernel(1200, 50, correlation=1),
    )  # fmt: skip
    (row,) = gap_causes(made).to_dict("records")
    assert (row["cause"], row["already_launched_ns"], row["dur_ns"]) == (
        "already launched", 100_000, 100_000,
    )  # fmt: skip
    assert sum(row[column] for column in COLUMNS) == row["dur_ns"]


def test_line_is_the_function_with_most_own_time_over_all_its_calls() -> None:
    calls = [python("job.py(5): tiny", 1101 + 4 * i, 3) for i in range(20)]  # 60 us in 20 calls
    row = only_gap(python("job.py(1): main", 1000, 200), *calls)
    assert row["line"] == "job.py(5): tiny"


def test_idle_by_cause_sums_to_the_idle_time() -> None:
    made = session(
        launch(1, 1000), kernel(1010, 90, correlation=1),
        annotation("enumerate(DataLoader)#_It.__next__", 1100, 90),
        launch(2, 1195), kernel(1200, 50, correlation=2),
        operator("aten::mm", 1250, 40), launch(3, 1291), kernel(1300, 10, correlation=3),
    )  # fmt: skip
    found = idle_by_cause(made).set_index("cause")
    assert found["idle_ns"].sum() == 150_000
    assert found.loc["input", ["idle_ns", "gaps", "longest_ns"]].tolist() == [90_000, 1, 100_000]
    assert found.loc["launch-bound", "idle_ns"] == 2_000 + 40_000 + 2_000


@pytest.mark.parametrize("scenario", ["before", "workers", "batch", "amp", "optimizer"])
def test_the_simulated_case_study_waits_for_input(scenario: str, samples: Path) -> None:
    made = maiprof_nb.load(samples / "case_study" / scenario / "rank0.pt.trace.json.gz")
    found = idle_by_cause(made)
    assert found["cause"].iloc[0] == "input"
    assert found["idle_share"].iloc[0] > 0.9
