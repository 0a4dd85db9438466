"""The case study's answers come out of the samples by themselves, and go away with the fixes."""

from __future__ import annotations

import re

import pandas as pd
import pytest

import maiprof_nb
from maiprof_nb import NotAnswerableError, Session
from maiprof_nb.findings import (
    generation_verdict,
    loop_verdict,
    metrics_verdict,
    python_verdict,
    utilisation_verdict,
    work_verdict,
)
from tests import tiny_traces as tiny
from tests.shipped_samples import loaded

VERDICTS = (utilisation_verdict, python_verdict, metrics_verdict, loop_verdict)
ALL = ("before", "workers", "batch", "amp", "optimizer")  # each keeps the fixes before it
together = pytest.mark.xdist_group("simulated samples")


def shares(text: str) -> list[float]:
    """The percentages of a sentence."""
    return [float(number) for number in re.findall(r"(\d+(?:\.\d+)?) %", text)]


@together
def test_before_the_gpu_is_idle_for_more_than_half_of_the_time():
    verdict = utilisation_verdict(loaded("before"))
    assert shares(verdict.figure)[0] > 50
    assert "waits for more than half of the time" in verdict.meaning
    assert "step 2" in verdict.attempt


@together
def test_before_the_table_is_named():
    """Most CPU time is in `sharded_iterrows()` and what its threads do with a row."""
    verdict = python_verdict(loaded("before"))
    assert "decode_row() in recommender/table.py" in verdict.figure
    assert "sharded_iterrows() in recommender/table.py" in verdict.figure
    assert "input-bound" in verdict.meaning
    assert "num_worker_threads" in verdict.attempt
    assert "1 line" in verdict.attempt


@together
def test_before_the_metrics_are_those_of_the_report():
    """SM occupancy 9.1 %, Tensor Core 0, peak memory 47.13 %."""
    figure = metrics_verdict(loaded("before")).figure
    found = {
        what: float(value)
        for what, value in re.findall(
            r"(SM occupancy|Tensor Core activity|at most) ([\d.]+) %", figure
        )
    }
    assert found["SM occupancy"] == pytest.approx(9.1, abs=0.05)
    assert found["Tensor Core activity"] == 0
    assert found["at most"] == 47.13
    verdict = metrics_verdict(loaded("before"))
    assert "Double the batch size" in verdict.attempt
    assert "2 settings" in verdict.attempt
    assert "mixed precision" in verdict.attempt
    assert "13 lines" in verdict.attempt


@together
def test_before_the_optimizer_runs_many_small_kernels():
    verdict = loop_verdict(loaded("before"))
    assert "The optimizer launches 304 pieces of device work a step" in verdict.figure
    assert "many small kernels" in verdict.meaning
    assert "fused=True" in verdict.attempt
    assert "1 line" in verdict.attempt


@together
def test_workers_end_the_idle_time():
    verdict = utilisation_verdict(loaded("workers"))
    assert shares(verdict.figure)[0] < 50
    assert "more than half" not in verdict.meaning


@together
def test_the_larger_batch_fills_the_memory():
    assert "batch" in metrics_verdict(loaded("workers")).attempt
    verdict = metrics_verdict(loaded("batch"))
    assert "batch" not in verdict.attempt
    assert "mixed precision" in verdict.attempt


@together
@pytest.mark.parametrize("name", ["amp", "optimizer"])
def test_mixed_precision_wakes_the_tensor_cores(name):
    verdict = metrics_verdict(loaded(name))
    assert "mixed precision" not in verdict.attempt
    assert "Tensor Cores do nothing" not in verdict.meaning


@together
def test_the_multi_tensor_optimizer_needs_few_kernels():
    assert "fused=True" in loop_verdict(loaded("amp")).attempt
    verdict = loop_verdict(loaded("optimizer"))
    assert verdict.attempt == ""
    assert "small kernels" not in verdict.meaning
    launched = int(re.search(r"launches (\d+) pieces", verdict.figure)[1])
    assert launched < 20


@together
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("ask", VERDICTS, ids=lambda ask: ask.__name__)
def test_every_verdict_has_evidence_and_says_that_it_is_simulated(ask, name):
    verdict = ask(loaded(name))
    assert verdict.question.endswith("?")
    assert verdict.figure.endswith(".")
    assert isinstance(verdict.evidence, pd.DataFrame)
    assert len(verdict.evidence) > 0
    assert any("simulator" in text for text in verdict.reservations)
    assert "nan" not in (verdict.figure + verdict.meaning).lower().split()


HOST_ONLY = (tiny.operator("aten::mm", 1000, 50),)
DEVICE_ONLY = (tiny.kernel(1000, 50), tiny.kernel(1060, 40))


@pytest.mark.parametrize(
    ("ask", "events", "missing"),
    [
        (utilisation_verdict, HOST_ONLY, "no device work"),
        (python_verdict, HOST_ONLY, "no device work"),
        (python_verdict, DEVICE_ONLY, "no host event"),
        (metrics_verdict, HOST_ONLY, "no GPU metrics"),
        (loop_verdict, DEVICE_ONLY, "no host events"),
        (loop_verdict, (), "no host events"),
        (work_verdict, (), "no host events"),
        (generation_verdict, HOST_ONLY, "no generation of text"),
        (utilisation_verdict, (tiny.launch(1, 1000),), "holds none of it"),
    ],
)
def test_what_is_not_recorded_is_not_answered(ask, events, missing):
    with pytest.raises(NotAnswerableError, match=missing) as error:
        ask(tiny.session(*events))
    assert error.value.remedy


def test_without_python_functions_the_operators_answer():
    verdict = python_verdict(
        tiny.session(
            tiny.step(1, 1000, 100), tiny.kernel(1099, 1), tiny.operator("aten::cat", 1000, 80)
        )
    )
    assert "aten::cat" in verdict.figure
    assert "with_stack=True" in verdict.attempt


def waiting_in(*between: tiny.Event) -> Session:
    """A gap of 700 us that `between` fills, on a thread with lines of Python."""
    return tiny.session(
        tiny.step(1, 1000, 1000), tiny.launch(1, 1000), tiny.kernel(1010, 90, correlation=1),
        tiny.python("serving/runner.py(5): is_decode_or_idle", 1050, 760), *between,
        tiny.launch(2, 1790), tiny.kernel(1800, 200, correlation=2),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("between", "named", "meaning", "attempt"),
    [
        (
            (tiny.python("job/data.py(3): load_row", 1101, 690),), "load_row()",
            "not their proven", "out of the training loop",
        ),
        (
            (tiny.launch(0, 1105, 680, name="hipMemcpyWithStream"),), "hipMemcpyWithStream",
            "waited for the GPU first", "non_blocking",
        ),
        (
            (tiny.annotation("enumerate(DataLoader)#_It.__next__", 1101, 690),), "DataLoader",
            "input-bound", "num_worker",
        ),
        (
            (tiny.launch(0, 1105, 680, name="cudaFree"),), "cudaFree",
            "asks the driver for memory", "empty_cache",
        ),
    ],
)  # fmt: skip
def test_the_cause_of_the_gaps_decides_what_step_2_says(between, named, meaning, attempt):
    """Names alone mislead: a decode pass of a server is no decoding of input."""
    verdict = python_verdict(waiting_in(*between))
    assert named in verdict.figure
    assert meaning in verdict.meaning
    assert attempt in verdict.attempt


def test_idle_time_of_several_gpus_is_that_of_all():
    """Rank 0 is idle from 1100 to 1800, rank 1 from 1300 to 1800, both from 1000 to 1010."""
    one, other = (
        [
            tiny.step(1, 1000, 1000), tiny.launch(1, 1000),
            tiny.kernel(1010, busy, correlation=1, device=rank),
            tiny.operator("aten::cat", 1400, 300),
            tiny.launch(2, 1790), tiny.kernel(1800, 200, correlation=2, device=rank),
        ]
        for rank, busy in ((0, 90), (1, 290))
    )  # fmt: skip
    figure = python_verdict(tiny.ranks(one, other)).figure
    assert figure.startswith("While every GPU was idle (510 µs), the host spent most time in ")
    assert "aten::cat: 600 µs of its own in 2 calls, summed over 2 threads" in figure


def test_the_least_busy_of_several_devices_is_named():
    session = tiny.ranks(
        [tiny.step(1, 1000, 100), tiny.kernel(1000, 90)],
        [tiny.step(1, 1000, 100), tiny.kernel(1000, 10, device=1)],
    )
    figure = utilisation_verdict(session).figure
    assert figure.startswith("GPU 1 of rank 1, the least busy, was idle 90.0 %")


def test_lost_launches_are_a_reservation():
    """As zoology the other way round: kernels cut at the window's edge have no launch."""
    events = [tiny.kernel(1000 + 10 * i, 5, correlation=i) for i in range(100)]
    launches = [tiny.launch(i, 900 + i) for i in range(90)]
    (text,) = utilisation_verdict(tiny.session(*events, *launches)).reservations
    assert text.startswith("10 of 100 pieces of device work have no launch")
    launches += [tiny.launch(i, 900 + i) for i in range(90, 99)]
    assert utilisation_verdict(tiny.session(*events, *launches)).reservations == ()


def test_what_the_recording_cost_is_a_reservation():
    session = tiny.session(tiny.kernel(1, 1), with_stack=1, record_shapes=1, profile_memory=0)
    (text,) = utilisation_verdict(session).reservations
    assert text.startswith("Recorded with record_shapes, with_stack")


def decoding(busy_us: int, *, as_graph: bool = False) -> Session:
    """Four decode passes of 100 us for 8 requests, the device busy for `busy_us` of each."""
    events = []
    for number in range(4):
        at = 1000 + 110 * number
        events.append(tiny.annotation("execute_context_0(0)_generation_8(8)", at, 100))
        events.append(tiny.launch(number, at + 2))
        pieces = 20 if as_graph else 1
        length = busy_us / pieces
        events += [
            tiny.kernel(at + 5 + i * length, length, correlation=number) for i in range(pieces)
        ]
    return tiny.session(*events)


def test_decode_that_waits_for_launches_is_told_to_use_a_graph():
    verdict = work_verdict(decoding(20))
    assert "4 decode passes take 100 µs of the host each at the median" in verdict.figure
    assert "32 tokens, 80" in verdict.figure  # 32 in 400 us
    assert "the GPU is busy 20.0 % of it" in verdict.figure
    assert "waits for the host" in verdict.meaning
    assert "CUDA graph" in verdict.attempt


def test_decode_that_is_a_graph_already_is_told_to_look_at_the_host():
    verdict = work_verdict(decoding(20, as_graph=True))
    assert "1 launch for 20 pieces" in verdict.meaning
    assert "step 2" in verdict.attempt


def test_decode_that_keeps_the_gpu_busy_is_bound_by_memory():
    verdict = work_verdict(decoding(90))
    assert "reads every weight" in verdict.meaning
    assert "more requests at a time" in verdict.attempt


@pytest.mark.parametrize(
    ("file", "words"),
    [  # one marked pass each
        ("tracelens-b200-vllm-eager/*", "1 prefill pass takes 87.4 ms of the host"),
        ("tracelens-qwen3-moe-decode/B300*", "1 decode pass takes 3.69 ms of the host"),
    ],
)
def test_real_servers(corpus, file, words):
    verdict = work_verdict(maiprof_nb.load(next((corpus / "kineto").glob(file))))
    assert words in verdict.figure
    assert verdict.question == "What do prefill and decode take?"
