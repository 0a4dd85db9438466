"""Data loading, forward, backward, optimizer: by what launched, not by what the clock shows."""

from __future__ import annotations

import pytest

from maiprof_nb.analysis.phases import PHASES, phases
from tests import tiny_traces as tiny

US = 1000


def two_steps() -> list[tiny.Event]:
    """The device is late: the optimizer's kernel of step 1 runs during step 2's forward."""
    events = []
    for number, at in ((1, 1000), (2, 1200)):
        first = 10 * number
        events += [
            tiny.step(number, at, 200),
            tiny.annotation(
                "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", at, 40
            ),
            tiny.operator("aten::mm", at + 40, 20, **{"Sequence number": first}),
            tiny.launch(first, at + 45),
            tiny.operator(
                "autograd::engine::evaluate_function: MmBackward0",
                at + 70,
                30,
                tid=tiny.AUTOGRAD,
                **{"Sequence number": first},
            ),
            tiny.launch(first + 1, at + 75, tid=tiny.AUTOGRAD),
            tiny.annotation("Optimizer.zero_grad#SGD.zero_grad", at + 60, 5),
            tiny.annotation("Optimizer.step#SGD.step", at + 110, 50),
            tiny.operator("aten::add_", at + 115, 10),
            tiny.launch(first + 2, at + 117),
            tiny.kernel(at + 50, 10, correlation=first),
            tiny.kernel(at + 80, 20, correlation=first + 1),
            tiny.kernel(at + 250, 15, correlation=first + 2),
        ]
    return events


def by_phase(*events):
    return phases(tiny.session(*events)).set_index("phase")


def test_phases_of_two_steps():
    found = by_phase(*two_steps())
    assert found.index.tolist() == list(PHASES)
    assert (found["host_ns"] / US).to_dict() == {
        "data loading": 80,
        "forward": 40,
        "backward": 60,
        "optimizer": 100,
        # 400 of the main thread's steps without the 220 above on that thread, and without the 60
        # in which it waits for autograd's
        "other": 120,
    }
    assert found["kernels"].to_dict() == {
        "data loading": 0,
        "forward": 2,
        "backward": 2,
        "optimizer": 2,
        "other": 0,
    }


def test_a_late_kernel_of_the_optimizer_belongs_to_the_optimizer():
    """Its launch was in step 1; it runs while step 2 loads data and begins its forward."""
    found = by_phase(*two_steps())
    assert found.loc["optimizer", "device_ns"] == 2 * 15 * US
    assert found.loc["optimizer", "mean_kernel_ns"] == 15 * US
    assert found.loc["forward", "device_ns"] == 2 * 10 * US


def test_the_window_ends_with_the_last_launched_work():
    assert by_phase(*two_steps())["host_share"]["data loading"] == pytest.approx(80 / 465)


def test_all_kernels_of_a_graph_have_the_phase_of_its_launch():
    found = by_phase(
        tiny.step(1, 1000, 100),
        tiny.annotation("Optimizer.step#Adam.step", 1010, 30),
        tiny.launch(5, 1015, name="cudaGraphLaunch"),
        *(tiny.kernel(1050 + i, 1, correlation=5) for i in range(6)),
    )
    assert found["kernels"]["optimizer"] == 6


def test_without_a_launch_the_operator_says_the_phase():
    """Gemm micro-benchmarks and AMD cuts: kernels have an external id and no runtime partner."""
    found = by_phase(
        tiny.annotation("## forward ##", 1000, 50),
        tiny.operator("aten::mm", 1010, 20, **{"External id": 77}),
        tiny.kernel(1020, 5, **{"External id": 77}),
        tiny.kernel(1030, 5),
    )
    assert found["kernels"].to_dict()["forward"] == 1
    assert found["kernels"].to_dict()["other"] == 1


def test_operators_of_a_loader_are_data_loading_whatever_their_sequence_number():
    """2021 files give every operator the current number, also those that record no gradient."""
    found = by_phase(
        tiny.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1000, 50),
        tiny.operator("aten::to", 1010, 30, **{"Sequence number": 4}),
        tiny.operator("aten::mm", 1060, 10, **{"Sequence number": 4}),
        tiny.operator("MmBackward", 1080, 10, tid=tiny.AUTOGRAD, **{"Sequence number": 4}),
    )
    assert (found["host_ns"] / US).to_dict() == {
        "data loading": 50,
        "forward": 10,
        "backward": 10,
        "optimizer": 0,
        "other": 0,
    }


def test_operators_of_the_optimizer_stay_with_it():
    found = by_phase(
        tiny.operator("aten::mm", 1000, 10, **{"Sequence number": 4}),
        tiny.operator("MmBackward0", 1020, 10, **{"Sequence number": 4}),
        tiny.annotation("Optimizer.step#SGD.step", 1040, 50),
        tiny.operator("aten::add_", 1050, 30, **{"Sequence number": 4}),
    )
    assert found["host_ns"]["optimizer"] == 50 * US
    assert found["host_ns"]["forward"] == 10 * US


@pytest.mark.parametrize(
    ("frame", "phase"),
    [
        ("torch/utils/data/dataloader.py(720): __next__", "data loading"),
        ("recommender/table.py(58): sharded_iterrows", "data loading"),
        ("nn.Module: Linear_0", "forward"),
        ("torch/_tensor.py(570): backward", "backward"),
        ("torch/amp/grad_scaler.py(177): scale", "backward"),
        ("torch/amp/grad_scaler.py(363): step", "optimizer"),
        ("torch/amp/grad_scaler.py(281): unscale_", "optimizer"),
        ("torch/amp/grad_scaler.py(484): update", "optimizer"),
        ("torch/optim/adam.py(212): step", "optimizer"),
        ("torch/optim/optimizer.py(467): wrapper", "optimizer"),
        ("torch/optim/lr_scheduler.py(140): wrapper", "optimizer"),
        ("torch/optim/optimizer.py(955): zero_grad", "other"),
        ("mytrainer.py(3): log", "other"),
    ],
)
def test_python_frames_tell_the_phase(frame, phase):
    found = by_phase(tiny.step(1, 1000, 100), tiny.python(frame, 1010, 40))
    expected = dict.fromkeys(PHASES, 0) | {"other": 100}
    if phase != "other":
        expected |= {phase: 40, "other": 60}
    assert (found["host_ns"] / US).to_dict() == expected


def test_workers_that_only_run_python_are_no_part_of_the_loop():
    found = by_phase(
        tiny.step(1, 1000, 100),
        tiny.python("torch/utils/data/_utils/fetch.py(32): fetch", 1000, 100, tid=9),
    )
    assert found["host_ns"]["data loading"] == 0


def test_without_events():
    found = by_phase()
    assert found["host_ns"].tolist() == [0] * 5
    assert found["kernels"].tolist() == [0] * 5
