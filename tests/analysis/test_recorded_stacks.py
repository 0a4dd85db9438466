"""Stacks that old traces keep in the operators' arguments, as callers of those operators.

Drawn by hand; the real trace is torch 1.9's with `with_stack=True`.
"""

from __future__ import annotations

from pathlib import Path

import maiprof_nb
from maiprof_nb.analysis._host_calls import host_calls
from maiprof_nb.analysis._intervals import intersect, union_of
from maiprof_nb.analysis.gap_causes import gap_causes
from maiprof_nb.analysis.icicle import Icicle, icicle
from maiprof_nb.analysis.phases import phase_calls
from maiprof_nb.analysis.python_in_gaps import all_idle, functions_in_gaps
from tests import tiny_traces as tiny

US = 1000
LINEAR = "torch/nn/functional.py(1): linear;model.py(7): forward;train.py(1): main"
LOG = "log.py(3): write;train.py(1): main"


def old_trace() -> list[tiny.Event]:
    """One gap, from 20 to 100 us, in which operators of two lines run for 30 and 20 us."""
    return [
        tiny.launch(1, 1001),
        tiny.kernel(1010, 10, correlation=1),
        tiny.operator("aten::linear", 1030, 30, **{"Call stack": LINEAR}),
        tiny.operator("aten::mm", 1035, 20, **{"Call stack": LINEAR}),
        tiny.operator("aten::copy_", 1070, 20, **{"Call stack": LOG}),
        tiny.launch(2, 1096),
        tiny.kernel(1100, 10, correlation=2),
        tiny.operator("aten::zero_", 1095, 4),
    ]


def paths(found: Icicle) -> dict[str, int]:
    names: list[str] = []
    for row in found.nodes.itertuples():
        above = names[row.parent] + " / " if row.parent >= 0 else ""
        names.append(above + str(row.name))
    return dict(zip(names, (found.nodes["total_ns"] // US).tolist(), strict=True))


def test_frames_are_the_callers_for_as_long_as_the_operator() -> None:
    threads = "threads that launch device work"
    assert paths(icicle(tiny.session(*old_trace()), min_share=0)) == {
        threads: 54,
        f"{threads} / train.py(1): main": 50,
        f"{threads} / aten::zero_": 4,
        f"{threads} / train.py(1): main / model.py(7): forward": 30,
        f"{threads} / train.py(1): main / log.py(3): write": 20,
        f"{threads} / aten::zero_ / cudaLaunchKernel": 2,
        f"{threads} / train.py(1): main / model.py(7): forward"
        " / torch/nn/functional.py(1): linear": 30,
        f"{threads} / train.py(1): main / log.py(3): write / aten::copy_": 20,
        f"{threads} / train.py(1): main / model.py(7): forward"
        " / torch/nn/functional.py(1): linear / aten::linear": 30,
        f"{threads} / train.py(1): main / model.py(7): forward"
        " / torch/nn/functional.py(1): linear / aten::linear / aten::mm": 20,
    }


def test_the_gap_and_the_functions_in_it_have_their_line() -> None:
    session = tiny.session(*old_trace())
    (gap,) = gap_causes(session).to_dict("records")
    assert (gap["line"], gap["user_line"], gap["line_of"]) == (
        "torch/nn/functional.py(1): linear", "model.py(7): forward", "call",
    )  # fmt: skip
    found = functions_in_gaps(session).set_index("name")
    assert found.loc["train.py(1): main", "total_in_gaps_ns"] == 50 * US
    assert found.loc["train.py(1): main", "self_in_gaps_ns"] == 0  # between operators: unknown
    assert found.loc["train.py(1): main", "calls"] == 2


def test_python_calls_win_where_a_trace_holds_both() -> None:
    session = tiny.session(*old_trace(), tiny.python("real.py(1): main", 1000, 200))
    names = set(host_calls(session)["name"].astype("str"))
    assert "real.py(1): main" in names
    assert "train.py(1): main" not in names
    assert gap_causes(session)["user_line"].tolist() == ["real.py(1): main"]


def test_python_of_one_rank_says_nothing_about_another() -> None:
    with_python = [*old_trace(), tiny.python("real.py(1): main", 1000, 200)]
    calls = host_calls(tiny.ranks(with_python, old_trace()))
    mains = calls[calls["name"].isin(["real.py(1): main", "train.py(1): main"])]
    assert mains.groupby("recording", observed=True)["name"].agg(set).tolist() == [
        {"real.py(1): main"}, {"train.py(1): main"},
    ]  # fmt: skip


def test_a_stack_that_goes_on_inside_an_operator_adds_only_the_new_frames() -> None:
    """The user's own autograd function: an operator that calls Python that calls operators."""
    inner = "mine.py(9): forward;" + LINEAR
    session = tiny.session(
        tiny.operator("Mine", 1000, 50, **{"Call stack": LINEAR}),
        tiny.operator("aten::mul", 1010, 20, **{"Call stack": inner}),
    )
    calls = host_calls(session)
    names = calls["name"].astype("str")
    chain, row = [], int(names[names == "aten::mul"].index[0])
    while row >= 0:
        chain.append(names[row])
        row = int(calls["parent"][row])
    assert chain == ["aten::mul", "mine.py(9): forward", "Mine", *LINEAR.split(";")]


def test_frames_are_no_rows_of_phases() -> None:
    """They have no event of their own; what they say (the optimizer's step) counts."""
    stack = {"Call stack": "torch/optim/sgd.py(117): step;train.py(1): main"}
    calls = phase_calls(tiny.session(tiny.operator("aten::add_", 1000, 10, **stack)))
    assert calls["event"].tolist() == [0]
    assert calls["phase"].tolist() == [3]


def test_a_real_old_trace_leads_down_to_the_users_lines(corpus: Path) -> None:
    """Checked by eye in the file: line 42 iterates the loader, 46 and 47 call model and loss.

    The time of line 42 is that of the operators whose stack ends there, merged.
    """
    (path,) = (corpus / "kineto" / "kineto-resnet50-workers").glob("num_workers_0.*")
    session = maiprof_nb.load(path)
    found = gap_causes(session)
    named = found[found["user_line"].notna()]
    assert named["dur_ns"].sum() / found["dur_ns"].sum() > 0.99
    assert found["user_line"].iloc[0] == "resnet50_profiler_api.py(42): <module>"
    assert found["line"].iloc[0].endswith("transforms/functional.py(138): to_tensor")
    of_forward = found[found["line_of"] == "forward"]
    assert set(of_forward["user_line"]) == {
        "resnet50_profiler_api.py(46): <module>", "resnet50_profiler_api.py(47): <module>",
    }  # fmt: skip
    nodes = icicle(session, min_share=0).nodes
    users = nodes[nodes["name"] == "resnet50_profiler_api.py(42): <module>"]
    assert users["own"].all()
    operators = session.table("operators")
    loading = operators["call_stack"].astype("str").str.endswith("api.py(42): <module>")
    in_gaps = intersect(all_idle(session), union_of(operators[loading.fillna(False)]))
    assert users["total_ns"].sum() == in_gaps.length_ns > 100_000 * US
