"""Single-precision products without tensor cores."""

from __future__ import annotations

import pytest

from tests import tiny_traces as tiny
from tests.findings.asking import US, finding
from tests.shipped_samples import loaded

RULE = "fp32-matmul"
A100 = [{"id": 0, "name": "NVIDIA A100-SXM4-40GB", "computeMajor": 8}]
V100 = [{"id": 0, "name": "Tesla V100-SXM2-16GB", "computeMajor": 7}]


def session(kind: str | None, kernel: str, devices: list = A100) -> tiny.Session:
    args = {"External id": 1, "Input Dims": [[64, 64], [64, 64]]}
    if kind:
        args["Input type"] = [kind, kind]
    return tiny.session(
        tiny.step(1, 1000, 1000),
        tiny.operator("aten::mm", 1000, 9, **args),
        tiny.kernel(1010, 200, name=kernel, **{"External id": 1}),
        deviceProperties=devices,
    )


def test_found() -> None:
    found = finding(session("float", "ampere_sgemm_64x64_nn"), RULE)
    assert found.outcome == "found"
    assert found.cost_ns == 200 * US
    assert "set_float32_matmul_precision" in found.advice
    assert found.change == "1 line"


def test_volta_has_no_tf32() -> None:
    found = finding(session("float", "volta_sgemm_64x64_nn", V100), RULE)
    assert found.outcome == "found"
    assert "set_float32_matmul_precision" not in found.advice
    assert found.change == "13 lines"


def test_without_types_the_kernels_tell() -> None:
    assert finding(session(None, "ampere_sgemm_64x64_nn"), RULE).outcome == "found"


@pytest.mark.parametrize(
    ("kind", "kernel"),
    [
        ("float", "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_nn>"),  # TF32 is on
        ("c10::Half", "ampere_fp16_s16816gemm_fp16_64x64_nn"),
        ("double", "ampere_dgemm_64x64_nn"),
    ],
)
def test_passed(kind: str, kernel: str) -> None:
    assert finding(session(kind, kernel), RULE).outcome == "passed"


@pytest.mark.parametrize(
    "given",
    [
        session(None, "mystery"),
        session("float", "sgemm", [{"id": 0, "name": "Tesla P100", "computeMajor": 6}]),
        tiny.session(tiny.kernel(1000, 5)),
        tiny.session(tiny.operator("aten::mm", 1000, 5)),
    ],
)
def test_not_applicable(given: tiny.Session) -> None:
    assert finding(given, RULE).outcome == "not-applicable"


@pytest.mark.xdist_group("simulated samples")
def test_samples() -> None:
    assert finding(loaded("batch"), RULE).outcome == "found"
    assert finding(loaded("amp"), RULE).outcome == "passed"
