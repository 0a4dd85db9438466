"""Backward functions belong to the forward operators that made them.

Right values: small traces drawn by hand, PyTorch's own arrows in traces that have them, and a
run made here whose every backward function comes from a known function and module.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import maiprof_nb
from maiprof_nb.analysis._forward_links import forward_of
from maiprof_nb.analysis.gap_causes import gap_causes
from maiprof_nb.analysis.operator_ranking import operator_ranking
from maiprof_nb.analysis.synchronisations import synchronisations
from maiprof_nb.session import Session
from tests import tiny_traces as tiny

torch = pytest.importorskip("torch", reason="PyTorch makes one of the traces")

ENGINE = "autograd::engine::evaluate_function: "


def forward(name: str, ts: float, dur: float, number: int, tid: int = tiny.MAIN) -> tiny.Event:
    return tiny.operator(name, ts, dur, tid=tid, **{"Sequence number": number, "Fwd thread id": 0})


def backward(
    name: str, ts: float, dur: float, number: int, thread: int | None = 1
) -> list[tiny.Event]:
    """The engine's evaluation of a function and the function in it."""
    args = {"Sequence number": number} | ({"Fwd thread id": thread} if thread else {})
    return [
        tiny.operator(ENGINE + name, ts, dur, tid=tiny.AUTOGRAD, **args),
        tiny.operator(name, ts + 1, dur - 2, tid=tiny.AUTOGRAD, **args),
    ]


def linked(session: Session) -> dict[str, str | None]:
    """Backward function -> forward operator, by name; in the order of the trace."""
    operators = session.table("operators")
    names = operators["name"].astype("str").tolist()
    made_by = forward_of(operators)
    return {
        f"{name} {at // 1000}": names[row] if row >= 0 else None
        for name, row, at in zip(names, made_by, operators["ts_ns"].tolist(), strict=True)
        if "Backward" in name and not name.startswith(ENGINE)
    }


@pytest.mark.parametrize("stated", [1, None])
def test_of_operators_with_one_number_the_last_to_begin_made_the_function(stated) -> None:
    """Outermost, first and longest are all wrong: ones made nothing, linear only called t."""
    session = tiny.session(
        forward("aten::ones", 1000, 5, 7),
        forward("aten::linear", 1010, 30, 7),
        forward("aten::t", 1012, 5, 7),
        forward("aten::addmm", 1020, 15, 8),
        *backward("AddmmBackward0", 1100, 20, 8, stated),
        *backward("TBackward0", 1130, 10, 7, stated),
    )
    assert linked(session) == {"AddmmBackward0 101": "aten::addmm", "TBackward0 131": "aten::t"}


def test_numbers_that_come_back_mean_the_last_before() -> None:
    """As in a trace of several processes or runs, one after the other."""
    session = tiny.session(
        forward("aten::mul", 1000, 5, 7),
        *backward("MulBackward0", 1010, 10, 7),
        forward("aten::add", 1100, 5, 7),
        *backward("AddBackward0", 1110, 10, 7),
        *backward("LostBackward0", 1130, 10, 6),
    )
    assert linked(session) == {
        "MulBackward0 11": "aten::mul", "AddBackward0 111": "aten::add", "LostBackward0 131": None,
    }  # fmt: skip


def test_threads_that_count_alike_are_told_apart_by_what_they_share() -> None:
    """Thread 1 made 7 and 8, thread 2 made 7 and 9: 8 and 9 tell which is which."""
    session = tiny.session(
        forward("aten::mul", 1000, 5, 7),
        forward("aten::mm", 1010, 5, 8),
        forward("aten::add", 1002, 5, 7, tid=77),
        forward("aten::bmm", 1012, 5, 9, tid=77),
        *backward("MulBackward0", 1110, 10, 7, 1),
        *backward("MmBackward0", 1130, 10, 8, 1),
        *backward("AddBackward0", 1150, 10, 7, 2),
        *backward("BmmBackward0", 1170, 10, 9, 2),
    )
    assert set(linked(session).values()) == {"aten::mul", "aten::mm", "aten::add", "aten::bmm"}
    assert linked(session)["AddBackward0 151"] == "aten::add"


def test_threads_that_cannot_be_told_apart_are_not_guessed() -> None:
    session = tiny.session(
        forward("aten::mul", 1000, 5, 7),
        forward("aten::add", 1002, 5, 7, tid=77),
        *backward("MulBackward0", 1110, 10, 7, 1),
    )
    assert linked(session) == {"MulBackward0 111": None}


def training() -> list[tiny.Event]:
    """Forward in model.py, backward on its own thread, where the host waits and is late."""
    return [
        tiny.python("train.py(1): main", 1000, 400),
        tiny.python("nn.Module: Linear_0", 1005, 90),
        tiny.python("model.py(7): forward", 1010, 80),
        forward("aten::mm", 1020, 20, 7),
        tiny.launch(1, 1030),
        tiny.kernel(1040, 60, correlation=1),
        *backward("MmBackward0", 1110, 180, 7),
        tiny.operator("aten::item", 1120, 30, tid=tiny.AUTOGRAD),
        tiny.launch(9, 1125, 20, tid=tiny.AUTOGRAD, name="cudaStreamSynchronize"),
        tiny.operator("aten::mm", 1180, 90, tid=tiny.AUTOGRAD),
        tiny.launch(2, 1260, tid=tiny.AUTOGRAD),
        tiny.kernel(1270, 50, correlation=2),
    ]


def test_line_and_module_of_the_forward_reach_rankings_gaps_and_waits() -> None:
    session = tiny.session(*training())
    for by, column, wanted in (
        ("stack", "user_line", "model.py(7): forward"), ("module", "module", "Linear_0"),
    ):  # fmt: skip
        rows = operator_ranking(session, by=by)
        rows = rows[rows["name"] == "aten::mm"].sort_values("line_of")
        assert rows[column].tolist() == [wanted, wanted]
        assert rows["line_of"].tolist() == ["call", "forward"]
        assert rows["device_self_ns"].tolist() == [60_000, 50_000]
    (gap,) = gap_causes(session).to_dict("records")
    assert (gap["tid"], gap["user_line"], gap["line_of"]) == (
        str(tiny.AUTOGRAD), "model.py(7): forward", "forward",
    )  # fmt: skip
    (wait,) = synchronisations(session).to_dict("records")
    assert (wait["operator"], wait["line"], wait["line_of"]) == (
        "MmBackward0", "model.py(7): forward", "forward",
    )  # fmt: skip


def test_a_forward_in_nobodys_line_leaves_that_of_the_caller_of_backward() -> None:
    """On the CPU the engine runs on the thread that called it."""
    number = {"Sequence number": 7}
    session = tiny.session(
        forward("aten::mm", 1000, 5, 7),
        tiny.python("train.py(1): main", 1100, 100),
        tiny.operator("MmBackward0", 1110, 50, **(number | {"Fwd thread id": 1})),
    )
    rows = operator_ranking(session, by="stack").set_index("name")
    assert rows.loc["MmBackward0", ["user_line", "line_of"]].tolist() == [
        "train.py(1): main", "call",
    ]  # fmt: skip


def test_python_inside_the_backward_pass_has_its_own_line() -> None:
    """A hook, or the backward of the user's own autograd function."""
    session = tiny.session(
        *training(), tiny.python("hooks.py(3): clip", 1170, 105, tid=tiny.AUTOGRAD)
    )
    rows = operator_ranking(session, by="stack")
    rows = rows[(rows["name"] == "aten::mm") & (rows["user_line"] == "hooks.py(3): clip")]
    assert rows["line_of"].tolist() == ["call"]


@pytest.mark.parametrize(
    ("name", "arrows"),
    [
        ("tracelens-mi300-resnet-ckpt/resnet_act_checkpoint.json.gz", 213),
        ("torchrec-a2a-qcomm-4ranks/ip-xxx-xx-xx-xxx.us-east-2.compute.internal_54105."
         "1698958768306379521.pt.trace.json.gz", 120),
    ],
)  # fmt: skip
def test_links_are_those_of_pytorchs_own_arrows(corpus: Path, name: str, arrows: int) -> None:
    session = maiprof_nb.load(corpus / "kineto" / name)
    operators, flows = session.table("operators"), session.table("flows")
    flows = flows[flows["category"] == "fwdbwd"]
    ends = flows.pivot(index="flow_id", columns="end", values="ts_ns")
    assert len(ends) == arrows
    starts = operators["ts_ns"].to_numpy(np.int64)
    made_by = forward_of(operators)
    ours = {int(starts[i]): int(starts[row]) for i, row in enumerate(made_by) if row >= 0}
    theirs = dict(zip(ends["finish"].tolist(), ends["start"].tolist(), strict=True))
    assert {at: ours.get(at) for at in theirs} == theirs


class Scaled(torch.nn.Module):
    """A layer and a product, each in a function of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)
        self.weight = torch.nn.Parameter(torch.rand(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return product(self.layer(x) + unused(x), self.weight).sum()


def unused(x: torch.Tensor) -> torch.Tensor:
    """Makes no node, so that what follows has the number its operators carry."""
    return torch.ones_like(x)


def product(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    unused(x)
    return x * weight


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Session:
    model, x = Scaled(), torch.rand(4, 8)
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, with_stack=True) as prof:
        model(x).backward()
    path = tmp_path_factory.mktemp("trained") / "trace.json"
    prof.export_chrome_trace(str(path))
    return maiprof_nb.load(path)


def test_a_live_run_names_function_and_module_of_every_backward_function(trained: Session) -> None:
    """By hand: sum and + are in forward of Scaled, * in product, addmm and t in its Linear."""
    for by, column, wanted in (
        ("stack", "user_line", {
            "SumBackward0": "forward", "MulBackward0": "product", "AddBackward0": "forward",
            "AddmmBackward0": "forward", "TBackward0": "forward",
        }),
        ("module", "module", {
            "SumBackward0": "Scaled_0", "MulBackward0": "Scaled_0", "AddBackward0": "Scaled_0",
            "AddmmBackward0": "Linear_0", "TBackward0": "Linear_0",
        }),
    ):  # fmt: skip
        rows = operator_ranking(trained, by=by)
        rows = rows[rows["name"].isin(list(wanted))]
        assert set(rows["line_of"]) == {"forward"}
        found = rows.set_index("name")[column].astype("str").str.split(": ").str[-1]
        assert found.to_dict() == wanted
