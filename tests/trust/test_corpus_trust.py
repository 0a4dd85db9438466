"""What the corpus' SOURCES.md says of its files is found; sound files pass what applies."""

from __future__ import annotations

from pathlib import Path

import pytest

import maiprof_nb
from maiprof_nb.trust import checks, trust
from tests.trust.asking import failing, outcome

PECULIAR = (  # file, rule, count as SOURCES.md has it, words of the reason
    ("zoology-a100-no-kernels/trace.json.gz", "no-device-work", 268, "idle"),
    ("hta-trace-diff/test.json.gz", "work-without-launch", 614, "(546 kernels among them"),
    (
        "kineto-resnet50-toplevel-list/num_workers_0.worker0.pt.trace.json.gz",
        "work-without-launch", 765, "(736 kernels among them",
    ),
    (
        "tracelens-mi300-resnet-ckpt/resnet_act_checkpoint.json.gz",
        "work-without-launch", 968, "(757 kernels among them",
    ),
    (
        "tracelens-qwen-h100-mi300/h100.Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
        "work-without-launch", 509, "(436 kernels among them",
    ),
    (
        "tracelens-qwen-h100-mi300/mi300.Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
        "work-without-launch", 463, "(463 kernels among them",
    ),
    (
        "tracelens-qwen3-moe-decode/B300.1782799835.6885648-TP-0-DECODE.trace.json.gz",
        "overlapping-work", 674, "begin before the one ahead",
    ),
    ("tracelens-gemm-misaligned/gemm_03_compute_misaligned.json.gz", "no-links", 10, "Nothing"),
    (  # 77 launches and 16 copies
        "hta-cupti-profiler/benchmark_result_924719_1679055439_trace.json.gz",
        "no-device-work", 93, "none of it",
    ),
    ("hta-cpu-only/rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz", "missing-ranks", 299, "300"),
    ("derived-broken/bert.json-cut-mid-event.json.gz", "file-cut", 1, "cut"),
    ("derived-broken/alexnet.gz-cut-at-60pct.json.gz", "file-cut", 1, "cut"),
    ("derived-broken/alexnet.negative-null-missing-dur.json.gz", "unfinished-events", 4, "no end"),
    ("derived-broken/bert.unescaped-quote-in-name.json.gz", "events-lost", 1, "missing"),
)  # fmt: skip
SOUND = (
    "hta-gpu-user-annotation/step_based_trace_2543932.json.gz",
    "hta-event-sync-multi-stream/event_sync_trace.json.gz",
    "param-linear-2080ti/linear_kineto.json.gz",
    "kineto-resnet50-workers/num_workers_0.worker0.1623143089861.pt.trace.json.gz",
    "kineto-resnet50-workers/num_workers_4.worker0.1623212756351.pt.trace.json.gz",
    "pippy/ref.json",
    "kineto-unit-out-of-order/after_fix_trace.json",
)


@pytest.mark.parametrize(("name", "rule", "count", "words"), PECULIAR)
def test_what_is_peculiar_is_found(corpus: Path, name, rule, count, words):
    found = outcome(maiprof_nb.load(corpus / "kineto" / name), rule)
    assert (found["outcome"], found["count"]) == ("failed", count)
    assert words in found["reason"]


@pytest.mark.parametrize("name", SOUND)
def test_sound_files_pass_everything_that_applies(corpus: Path, name):
    assert failing(maiprof_nb.load(corpus / "kineto" / name)) == set()


def test_zoology_does_not_answer_for_its_gpu(corpus: Path):
    session = maiprof_nb.load(corpus / "kineto" / "zoology-a100-no-kernels" / "trace.json.gz")
    for figure in ("gpu-utilisation", "breakdown", "gaps", "operator-device-times"):
        assert trust(session, figure).state == "not answerable"
    assert trust(session, "operator-times").state == "reduced"  # by record_shapes


def test_the_straggler_job_has_53_us_between_host_and_device(corpus: Path):
    session = maiprof_nb.load(corpus / "kineto" / "torchrec-sleep-straggler-4ranks")
    table = checks(session)
    early = table[(table["id"] == "work-before-launch") & (table["outcome"] == "failed")]
    assert len(early) == 4
    assert any("up to 53.0 µs" in reason for reason in early["reason"])
    assert outcome(session, "missing-ranks")["outcome"] == "passed"


def test_ranks_of_one_host_share_a_clock(corpus: Path):
    session = maiprof_nb.load(corpus / "kineto" / "param-dlrm-8ranks")
    assert outcome(session, "rank-clocks")["outcome"] == "passed"


def test_mig_instances_are_not_idle(corpus: Path):
    folder = corpus / "metrics" / "smi-captures"
    for name in ("h100-mig_load_query_gpu.csv", "h200-mig_load_dmon.txt"):
        found = outcome(maiprof_nb.load(folder / name), "utilisation-unmeasured")
        assert found["outcome"] == "failed", name
    plain = maiprof_nb.load(folder / "h200_load_query_gpu.csv")
    assert failing(plain) == set()
