"""What holds of every diagnosis, on public recordings of every make: GPU, CPU, AMD, MTIA, cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from maiprof_nb import load
from maiprof_nb.cli.main import main
from maiprof_nb.findings.diagnosis import as_json, diagnose

FILES = (
    "kineto-resnet50-workers/num_workers_0*",
    "tracelens-bert-small-h100",
    "tracelens-qwen-h100-mi300/mi300*",
    "tracelens-sglang-decode-graph/sglang*",
    "tracelens-b200-vllm-eager",
    "torchrec-a2a-qcomm-4ranks",
    "param-dlrm-8ranks",
    "hta-cpu-only",
    "hta-mtia-inference",
    "hta-call-stack-cut",
    "zoology-a100-no-kernels",
    "derived-broken/alexnet.negative*",
    "issue-snippets/pytorch_issue98432*",
)


def refused(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


@pytest.mark.parametrize("pattern", FILES)
def test_numbers_are_possible_and_texts_are_sentences(corpus: Path, pattern: str) -> None:
    path = next((corpus / "kineto").glob(pattern))
    for finding in diagnose(load(path)):
        one: dict[str, Any] = json.loads(json.dumps(as_json(finding)), parse_constant=refused)
        assert one["outcome"] != "failed", one["reason"]
        said = one["reason"] or one["title"]
        assert said[0].isupper() or said[0].isdigit()
        assert "nan" not in said.lower().split()
        assert " 1 gaps" not in said
        if one["outcome"] == "not-applicable":
            assert said.endswith(".")
        if one["outcome"] == "found":
            window = one["scope"]["window_ns"][1] - one["scope"]["window_ns"][0]
            assert one["cost_ns"] is None or 0 < one["cost_ns"] <= window
            assert one["share"] is None or 0 < one["share"] <= 1
            assert one["evidence"]
            assert one["trust"]["state"] != "not answerable"
        gain = one["gain"]
        if gain and "floor_ns" in gain:
            assert gain["floor_ns"] <= gain["expected_ns"] <= gain["ceiling_ns"]
            assert gain["ceiling_share"] <= 1


def test_a_gain_below_zero_is_not_called_a_saving(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The host is the limit: casts would only be more launches, at best nothing changes."""
    main(["diagnose", str(corpus / "kineto" / "param-linear-2080ti" / "linear_kineto.json.gz")])
    printed = capsys.readouterr().out
    assert "would save nothing, by replaying" in printed
    assert "would save -" not in printed
