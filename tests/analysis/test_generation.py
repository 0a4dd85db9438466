"""Prefill and decode: by the servers' marks, or by the width of a model's calls."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

import maiprof_nb
from maiprof_nb.analysis.generation import BY_MARK, BY_SHAPE, generates, generation
from maiprof_nb.analysis.generation_stages import generation_stages
from maiprof_nb.errors import NotAnswerableError
from tests import tiny_traces as tiny

US = 1000


def passes(widths: list[int], *, batch: int = 2) -> list[tiny.Event]:
    """A call of the model for each width, 100 us apart; each embeds and launches once."""
    events = []
    for number, width in enumerate(widths):
        at = 1000 + 100 * number
        dims = [[50257, 768], [batch, width]]
        events += [
            tiny.python("nn.Module: GPT_0", at, 80),
            tiny.python("nn.Module: Embedding_0", at + 5, 10),
            tiny.operator("aten::embedding", at + 6, 5, **{"Input Dims": dims}),
            tiny.launch(number, at + 7),
            tiny.kernel(at + 120, 10 * width, correlation=number),
        ]
    return events


def test_a_wide_call_and_a_train_of_narrow_ones() -> None:
    found = generation(tiny.session(*passes([7, 1, 1, 1])))
    assert found["stage"].tolist() == ["prefill", "decode", "decode", "decode"]
    assert found["prefill_tokens"].tolist() == [14, 0, 0, 0]
    assert found["decode_requests"].tolist() == [0, 2, 2, 2]
    assert (found["dur_ns"] / US).tolist() == [80] * 4
    assert (found["device_ns"] / US).tolist() == [70, 10, 10, 10]
    assert found["kernels"].tolist() == [1] * 4
    assert found["launches"].tolist() == [1] * 4
    assert found["tokens"].tolist() == [14, 2, 2, 2]
    # the kernels start 120 us after their pass: the first ends after 190, the others after 130
    assert ((found["end_ns"] - found["ts_ns"]) / US).tolist() == [190, 130, 130, 130]
    assert set(found["recognised_by"]) == {BY_SHAPE}


@pytest.mark.parametrize(
    "events",
    [
        passes([7, 7, 7, 7, 7]),  # scoring or embedding of texts
        passes([1, 1, 1, 1]),  # nothing says that it generates
        passes([7, 1, 1]),  # two narrow ones are no train
        [*passes([7, 1, 1, 1]), tiny.operator("autograd::engine::evaluate_function: X", 1500, 9)],
        [tiny.operator("aten::mm", 1000, 10)],
    ],
)
def test_other_jobs_are_not_taken_for_generation(events: list[tiny.Event]) -> None:
    with pytest.raises(NotAnswerableError):
        generation(tiny.session(*events))


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("execute_context_1(888_788544)_generation_0(0)", ("prefill", 1, 888, 0)),
        ("execute_16_context_0(sq0sk0)_generation_16(sq16sk8193)", ("decode", 0, 0, 16)),
        ("execute_context_2(30)_generation_5(5)", ("mixed", 2, 30, 5)),
        ("step[DECODE bs=16]", ("decode", 0, 0, 16)),
        ("step[EXTEND bs=2 toks=512]", ("prefill", 2, 512, 0)),
    ],
)
def test_marks_of_servers(name: str, facts: tuple[str, int, int, int]) -> None:
    found = generation(tiny.session(tiny.annotation(name, 1000, 50))).iloc[0]
    columns = ["stage", "prefill_requests", "prefill_tokens", "decode_requests"]
    assert tuple(found[columns]) == facts
    assert found["recognised_by"] == BY_MARK


@pytest.mark.parametrize(
    ("file", "stage", "requests"),
    [  # as the marks in the files say
        ("tracelens-qwen3-moe-decode/B300*", "decode", 16),
        ("tracelens-sglang-decode-graph/sglang*", "decode", 32),
        ("tracelens-vllm-full-graph/*", "decode", 32),
        ("tracelens-b200-vllm-eager/*", "prefill", 1),
    ],
)
def test_real_passes(corpus: Path, file: str, stage: str, requests: int) -> None:
    session = maiprof_nb.load(next((corpus / "kineto").glob(file)))
    found = generation(session)
    assert found["stage"].tolist() == [stage]
    assert found[f"{stage}_requests"].tolist() == [requests]
    assert found["kernels"].iloc[0] > 400


@pytest.mark.parametrize("file", ["tracelens-sglang-decode-graph/bs*", "tracelens-owlv2-h100/*"])
def test_a_capture_and_one_forward_are_no_generation(corpus: Path, file: str) -> None:
    session = maiprof_nb.load(next((corpus / "kineto").glob(file)))
    with pytest.raises(NotAnswerableError):
        generation(session)


def test_stages_by_hand() -> None:
    """One prefill of 9 us with a graph of two; two decodes of 4, 10 us apart, 1 us busy each."""
    session = tiny.session(
        tiny.annotation("execute_context_2(60)_generation_0(0)", 1000, 9),
        tiny.launch(1, 1001),
        tiny.kernel(1004, 2, correlation=1),
        tiny.kernel(1007, 3, correlation=1),  # ends 1 us after the pass
        tiny.annotation("execute_context_0(0)_generation_2(2)", 1020, 4),
        tiny.launch(2, 1021),
        tiny.kernel(1023, 1, correlation=2),
        tiny.annotation("execute_context_0(0)_generation_2(2)", 1030, 4),
        tiny.launch(3, 1031),
        tiny.kernel(1033, 1, correlation=3),
    )
    assert generates(session)
    prefill, decode = generation_stages(session).to_dict("records")
    assert (prefill["stage"], prefill["passes"], prefill["tokens"]) == ("prefill", 1, 60)
    assert (prefill["span_ns"], prefill["busy_share"]) == (10 * US, 0.5)
    assert (prefill["launches"], prefill["kernels_per_pass"]) == (1, 2)
    assert prefill["tokens_per_s"] == pytest.approx(60 / 10e-6)
    assert (decode["stage"], decode["passes"], decode["tokens"]) == ("decode", 2, 4)
    assert (decode["median_ns"], decode["span_ns"]) == (4 * US, 8 * US)
    assert decode["busy_share"] == 0.25
    assert decode["tokens_per_s"] == pytest.approx(4 / 8e-6)


def test_tokens_that_one_pass_does_not_state_are_not_added_up() -> None:
    marks = [tiny.annotation(f"step[EXTEND bs=2{more}]", at, 5) for more, at in
             ((" toks=512", 1000), ("", 1010))]  # fmt: skip
    (row,) = generation_stages(tiny.session(*marks)).itertuples()
    assert row.tokens is pd.NA
    assert math.isnan(row.tokens_per_s)
    assert math.isnan(row.busy_share)  # no device work was recorded


def test_training_with_a_server_beside_it_is_training() -> None:
    """Reinforcement learning: the model generates, then learns."""
    marks = [tiny.annotation("step[DECODE bs=16]", 1000 + 10 * i, 5) for i in range(4)]
    assert generates(tiny.session(*marks))
    learns = tiny.annotation("Optimizer.step#AdamW.step", 1100, 5)
    assert not generates(tiny.session(*marks, learns))
