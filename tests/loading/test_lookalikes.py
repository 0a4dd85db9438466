from __future__ import annotations

import json
import os
import pickle
import time
from pathlib import Path

import pytest

from maiprof_nb.loading import lookalikes, sources
from maiprof_nb.loading.lookalikes import Refusal, reason

CORPUS = Path(os.environ.get("MAIPROF_CORPUS", Path(__file__).parents[3] / "shared" / "corpus"))
# What is no Kineto trace among the files of corpus/kineto, by its SOURCES.md; all others are
# traces, damaged traces, or chrome traces of other makers, which the trace reader takes.
NO_TRACES = {
    "chakra/llama_pytorch24.05.tgz": "Git LFS pointer",
    "chakra/small_chakra.0.json": "Chakra",
    "derived-broken/empty-file.json": "is empty",
    "derived-broken/empty-object.json": "empty JSON object",
    "hta-et-pair/benchmark_simple_add_et.json.gz": "PyTorch execution trace",
    "param-dlrm-8ranks-et/dlrm_eg_0.json.gz": "PyTorch execution trace",
    "param-dlrm-8ranks-et/dlrm_eg_1.json.gz": "PyTorch execution trace",
    "param-linear-2080ti/linear_et.json.gz": "PyTorch execution trace",
}
NO_METRICS = {"total_summary.csv": "without any time"}  # of corpus/metrics, by name
NO_CORPUS = [pytest.param(None, marks=pytest.mark.skip(reason=f"no corpus at {CORPUS}"))]


def _params(kind: str):
    found = [path for path in sorted((CORPUS / kind).glob("*/*")) if path.is_file()]
    return [pytest.param(path, id=f"{path.parent.name}/{path.name}") for path in found] or NO_CORPUS


def _reason(path: Path) -> Refusal | None:
    return reason(sources.content(str(path))[0])


@pytest.mark.parametrize("path", _params("kineto"))
def test_no_trace_is_taken_for_something_else(path):
    expected = NO_TRACES.get(f"{path.parent.name}/{path.name}")
    refusal = _reason(path)
    if expected is None:
        assert refusal is None
    else:
        assert expected in refusal.problem
        assert refusal.remedy


@pytest.mark.parametrize("path", _params("metrics"))
def test_only_what_is_no_course_over_time_is_refused(path):
    expected = NO_METRICS.get(path.name)
    refusal = _reason(path)
    if expected is None:
        assert refusal is None
    else:
        assert expected in refusal.problem
        assert "nvidia-smi" in refusal.remedy


@pytest.mark.parametrize("path", _params("memory"))
def test_snapshots_pass_and_timeline_pages_do_not(path):
    refusal = _reason(path)
    if path.suffix == ".html":
        assert "picture" in refusal.problem
        assert "_dump_snapshot" in refusal.remedy
    else:
        assert refusal is None


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b" \n\0\0", "is empty"),
        (b"PK\x03\x04" + b"\0" * 40, "zip archive"),
        (b"name" + b"\0" * 253 + b"ustar\0", "tar archive"),
        (b"\x28\xb5\x2f\xfd....", "zstd"),
        (b"<!DOCTYPE html><html></html>", "web page"),
        (b'\xef\xbb\xbf{"a": 1}', "without traceEvents (it has a)"),
        (b'{"status":"success","data":["job","gpu"]}', "Prometheus"),
        (b'{"loss": 1, "_timestamp": 2, "_runtime": 3}\n{', "Weights & Biases"),
        (b"[[1, 2, 3], [[4]]]", "list of lists"),
        (b"[1, 2]", "plain values"),
        (b'[{"a": 1}, {"b": 2}]', "no trace events"),
        (b"2026/01/03 15:36:53.507, NVIDIA GeForce RTX 4090, 1 %, 1129 MiB\n", "header line"),
        (b"1 %, 1129 MiB\n2 %, 1130 MiB\n", "header line"),
        (b"| NVIDIA-SMI 495.44       Driver Version: 495.44 |\n", "the table that nvidia-smi"),
        (b"-----  -----\n  Name    Self CPU %   Self CPU\n-----  -----\n", "key_averages"),
    ],
)  # fmt: skip
def test_made_by_hand(data, said):
    """Layouts seen in public text (the corpus' FORMAT.md) or written by the tool's own manual."""
    assert said in reason(data).problem


@pytest.mark.parametrize(
    "data",
    [
        b'{"traceEvents": []}',
        b'\xef\xbb\xbf \r\n{"schemaVersion": 1, "traceEvents": [',
        b"[]",
        b'[{"ph": "X", "name": "a"',
        b'[{"name": "a", "args": {"x": NaN}, "ph": "X"}]',
        b'[{"broken": inf, "ph": "X"}]',
        b'{"nodes": [], "schema": "1", "traceEvents": []}',
        b'{"metadata": {"a": inf}, "more": 1, "traceEvents": []}',
        pickle.dumps({"segments": []}),
        b"timestamp, index, utilization.gpu [%]\n2026/01/03 15:36:53.507, 0, 34 %\n",
        b"# gpu   pwr\n# Idx   W\n 0  5\n",
        b"# gpu   pwr\n# Idx   W\n 0  5\n# my pid was 4, used_memory, fine\n",
        b"#Entity   SMACT\nID\nGPU 0  0.1\n",
        b'DCGM_FI_DEV_SM_CLOCK{gpu="0"} 139\n',
        b'{"status":"success","data":{"resultType":"matrix","result":[]}}',
        b'{"system.gpu.0.gpu": 1, "_timestamp": 2, "_runtime": 3}\n{',
        b"device,Temperature (Sensor edge) (C),GPU use (%)\ncard0,45.0,3\n",
        b"PAR1....",
        b"[[-1, 1, 37888, 7], [-1, 1, 512, 7]]",
        b"[[1795989561896883], [[0, 1, 0, 0, 0, 0, 0, 0, 0]]]",
        b'{"$schema":"https://www.speedscope.app/file-format-schema.json","profiles":[',
        b"free text of no make",
    ],
)
def test_what_a_reader_may_try_is_let_through(data):
    assert reason(data) is None


def test_metadata_before_the_events_may_be_large():
    """A metadata value larger than the part looked at."""
    filler = {"metadata": {str(number): "x" * 1000 for number in range(2000)}}
    trace = json.dumps({**filler, "traceEvents": []}).encode()
    assert len(trace) > lookalikes.JSON_HEAD_BYTES
    assert reason(trace) is None
    assert "without traceEvents" in reason(json.dumps(filler).encode()).problem


@pytest.mark.parametrize(
    "head",
    [
        b'{"traceEvents": [',
        b'{"schema": "1.1", "nodes": [',
        b'{"unknown": [',
        b"[",
        b'[{"args": "',
        b"[[",
        b"",
        b"timestamp, index\n",
        b"a,pid,",
    ],
)
def test_a_huge_file_is_not_parsed(head):
    """100 MB within 0.3 s; reading it as JSON would take seconds."""
    data = head + b'{"ph": "X"}, pid ' * 6_000_000
    before = time.perf_counter()
    reason(data)
    assert time.perf_counter() - before < 0.3


def test_deep_nesting_is_no_recursion():
    for mark in (b"[", b'{"a":', b'[{"a":'):
        reason(mark * 300_000)
