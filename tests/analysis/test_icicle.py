"""The icicle: exact sums, restricted to gaps or a window, bounded in size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import maiprof_nb
from maiprof_nb.analysis.icicle import Icicle, icicle
from maiprof_nb.analysis.python_in_gaps import functions_in_gaps
from maiprof_nb.errors import NotAnswerableError, UsageError
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow
from tests import tiny_traces as tiny

US = 1000
LAUNCHING, OTHERS = "threads that launch device work", "other threads"


def job() -> list[tiny.Event]:
    """Two kernels with a gap from 20 to 100 us; times in us from the first event on."""
    return [
        tiny.python("train.py(1): main", 1000, 200),
        tiny.python("data.py(2): load", 1030, 40),
        tiny.python("<built-in function read>", 1035, 10),
        tiny.python("data.py(2): load", 1080, 10),
        tiny.operator("aten::mm", 1092, 20),
        tiny.launch(1, 1001),
        tiny.launch(2, 1094),
        tiny.kernel(1010, 10, correlation=1),
        tiny.kernel(1100, 10, correlation=2),
        tiny.python("worker.py(3): run", 1050, 100, tid=900),
    ]


def by_path(found: Icicle) -> pd.DataFrame:
    nodes = found.nodes
    paths = []
    for row in nodes.itertuples():
        above = paths[row.parent] + " / " if row.parent >= 0 else ""
        paths.append(above + str(row.name))
    return nodes.assign(path=paths).set_index("path")


def expect_exact(found: Icicle) -> None:
    """Own, pruned and callees' time of every node sum to its total."""
    nodes = found.nodes
    callees = nodes[nodes["parent"] >= 0].groupby("parent")["total_ns"].sum()
    inside = callees.reindex(nodes.index, fill_value=0)
    assert (nodes["self_ns"] + nodes["pruned_ns"] + inside == nodes["total_ns"]).all()
    assert (nodes["pruned_ns"] >= 0).all()
    assert nodes.loc[nodes["parent"] < 0, "total_ns"].sum() <= found.total_ns


def test_calls_merge_by_path_within_the_gap() -> None:
    """By hand: the gap is 20 to 100 us, in which main runs 80, load 40 + 10, read 10."""
    found = icicle(tiny.session(*job()), min_share=0)
    expect_exact(found)
    assert found.within_ns == 80 * US
    nodes = by_path(found)
    main = f"{LAUNCHING} / train.py(1): main"
    total = (nodes["total_ns"] / US).to_dict()
    assert total == {
        LAUNCHING: 80,
        main: 80,
        f"{main} / data.py(2): load": 50,
        f"{main} / data.py(2): load / <built-in function read>": 10,
        f"{main} / aten::mm": 8,
        f"{main} / aten::mm / cudaLaunchKernel": 2,
        OTHERS: 50,
        f"{OTHERS} / worker.py(3): run": 50,
    }
    assert nodes.loc[main, "self_ns"] == (80 - 50 - 8) * US
    assert nodes.loc[f"{main} / data.py(2): load", "calls"] == 2
    assert nodes["own"].to_dict()[f"{main} / data.py(2): load"]
    assert not nodes["own"].to_dict()[f"{main} / data.py(2): load / <built-in function read>"]
    assert nodes.loc[LAUNCHING, "threads"] == 1


def test_the_window_cuts_and_gaps_may_be_left_out_of_it() -> None:
    session = tiny.session(*job())
    cut = by_path(icicle(session, window=TimeWindow(0, 50 * US)))
    assert cut.loc[LAUNCHING, "total_ns"] == 30 * US
    whole = icicle(session, window=TimeWindow(0, 50 * US), gaps_only=False)
    assert by_path(whole).loc[LAUNCHING, "total_ns"] == 50 * US
    expect_exact(whole)


def test_a_window_outside_of_everything_is_empty() -> None:
    found = icicle(tiny.session(*job()), window=TimeWindow(900 * US, 950 * US), gaps_only=False)
    assert found.nodes.empty
    assert found.total_ns == 0


def test_calls_that_overlap_count_once() -> None:
    """Neither encloses the other, so a sum over them would exceed the time there is."""
    found = icicle(
        tiny.session(tiny.python("a", 1000, 60), tiny.python("b", 1040, 60)), gaps_only=False
    )
    expect_exact(found)
    assert found.total_ns <= 100 * US


def test_calls_of_one_length_and_of_none() -> None:
    """The outer of two calls that begin and end together must not outlive them."""
    found = icicle(
        tiny.session(
            tiny.python("main", 1000, 100),
            tiny.python("outer", 1010, 20),
            tiny.python("inner", 1010, 20),
            tiny.python("nothing", 1050, 0),
        ),
        gaps_only=False,
        min_share=0,
    )
    own = found.nodes.set_index("name")["self_ns"] / US
    assert own.to_dict() == {"other threads": 0, "main": 80, "outer": 0, "inner": 20}


def test_looking_into_a_path_brings_its_callees_alone_and_finer() -> None:
    """4 of 6000 us: with the least at a hundredth they have a row only among the 400 of loads."""
    session = tiny.session(
        tiny.python("main", 1000, 6000),
        tiny.python("load", 1100, 400),
        tiny.python("read", 1200, 300),
        *(tiny.python(f"parse{number}", 1210 + 10 * number, 4) for number in range(3)),
        tiny.python("train", 2000, 4000),
    )
    whole = icicle(session, gaps_only=False, min_share=0.01)
    rows = by_path(whole)
    assert not rows.index.str.contains("parse").any()
    read = rows.loc["other threads / main / load / read"]
    assert (read["pruned_ns"], read["pruned"], read["self_ns"]) == (12 * US, 3, 288 * US)
    load = int(whole.nodes.set_index("name").loc["load", "path"])
    finer = icicle(session, gaps_only=False, min_share=0.01, under=load)
    expect_exact(finer)
    assert (finer.total_ns, finer.dropped) == (400 * US, 0)
    assert (by_path(finer)["total_ns"] / US).to_dict() == {
        "load": 400, "load / read": 300,
        "load / read / parse0": 4, "load / read / parse1": 4, "load / read / parse2": 4,
    }  # fmt: skip
    with pytest.raises(UsageError):
        icicle(session, gaps_only=False, under=10**6)


def test_the_backward_pass_lies_under_the_line_of_its_forward() -> None:
    """Two calls of one line, one of another; what autograd adds round them has none."""
    numbered = {"Sequence number": 1, "Fwd thread id": 0}
    events = [tiny.operator("torch::autograd::AccumulateGrad", 1300, 5, tid=tiny.AUTOGRAD)]
    for number, line in ((1, "model.py(1): f"), (2, "model.py(9): g"), (3, "model.py(1): f")):
        at = 1000 + 20 * number
        events += [
            tiny.python(line, at, 15),
            tiny.operator("aten::mm", at + 2, 10, **(numbered | {"Sequence number": number})),
        ]
        engine = {"Sequence number": number, "Fwd thread id": 1}
        for name, later in (("autograd::engine::evaluate_function: MmBackward0", 0), ("Mm", 1)):
            events.append(
                tiny.operator(
                    name, 1200 + at % 1000 + later, 10 - later, tid=tiny.AUTOGRAD, **engine
                )
            )
    found = icicle(tiny.session(*events), gaps_only=False, min_share=0)
    expect_exact(found)
    rows = by_path(found)
    backward = rows[rows["kind"] == "forward"]
    assert backward["name"].tolist() == ["model.py(1): f", "model.py(9): g"]
    assert (backward["total_ns"] / US).tolist() == [20, 10]
    assert backward["calls"].tolist() == [2, 1]
    assert backward["threads"].tolist() == [1, 1]
    assert backward["own"].all()
    engine_name = "autograd::engine::evaluate_function: MmBackward0"
    assert f"other threads / model.py(1): f / {engine_name} / Mm" in rows.index
    assert rows.loc["other threads / torch::autograd::AccumulateGrad", "total_ns"] == 5 * US


def test_without_device_work_there_are_no_gaps_to_ask_for() -> None:
    session = tiny.session(tiny.operator("aten::add", 1000, 10))
    with pytest.raises(NotAnswerableError):
        icicle(session)
    assert icicle(session, gaps_only=False).total_ns == 10 * US


def test_nothing_recorded() -> None:
    assert icicle(Session([tiny.recording()]), gaps_only=False).nodes.empty


def test_the_number_of_nodes_is_bounded_and_callers_stay() -> None:
    events = [tiny.python("main", 1000, 100_000)]
    rng = np.random.default_rng(7)
    for number in range(3000):
        at = 1000 + 30 * number
        events.append(tiny.python(f"f{number}", at, int(rng.integers(5, 29))))
        events.append(tiny.python(f"g{number}", at + 1, 3))
    found = icicle(tiny.session(*events), gaps_only=False, min_share=0, max_nodes=500)
    expect_exact(found)
    assert len(found.nodes) == 500
    assert found.dropped == 1 + 1 + 6000 - 500
    assert (found.nodes["parent"] < found.nodes["node"]).all()


def test_the_sample_agrees_with_the_table_of_functions(samples: Path) -> None:
    session = maiprof_nb.load(samples / "case_study" / "before")
    found = icicle(session, min_share=0)
    expect_exact(found)
    own = found.nodes[found.nodes["kind"] == "python"].groupby("name")["self_ns"].sum()
    table = functions_in_gaps(session)
    table = table[table["kind"] == "python"].set_index("name")["self_in_gaps_ns"]
    assert len(own) >= 10
    pd.testing.assert_series_equal(
        own.sort_index(), table[table.index.isin(own.index)].sort_index(), check_names=False
    )


def test_a_deep_real_trace(corpus: Path) -> None:
    path = corpus / "kineto" / "tracelens-owlv2-h100"
    session = maiprof_nb.load(path)
    for gaps_only in (True, False):
        found = icicle(session, gaps_only=gaps_only)
        expect_exact(found)
        assert len(found.nodes) < 3000
        assert found.nodes["name"].str.contains("zoom_shift").any()
