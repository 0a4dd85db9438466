"""FLOPs, bytes and peaks, by hand."""

from __future__ import annotations

import math

import pytest

import maiprof_nb
from maiprof_nb import NotAnswerableError
from maiprof_nb.analysis import _flops
from maiprof_nb.analysis.device_peaks import has_tensor_cores, known_peaks, peaks_of
from maiprof_nb.analysis.matrix_calls import matrix_calls
from maiprof_nb.analysis.roofline import roofline
from maiprof_nb.timebase import TimeWindow
from tests import tiny_traces as tiny

A100 = [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "totalGlobalMem": 84_986_691_584}]


def call(name: str, dims: list, values: list | None = None) -> _flops.Effort | None:
    values = [] if values is None else [str(value) for value in values]
    return _flops.effort(name, _flops.Call(dims, [], values))


@pytest.mark.parametrize(
    ("name", "dims", "values", "flops", "elements"),
    [
        ("mm", [[2, 3], [3, 5]], [], 2 * 2 * 3 * 5, 6 + 15 + 10),
        ("addmm", [[5], [2, 3], [3, 5], [], []], [], 60, 6 + 15 + 10 + 5),
        ("bmm", [[4, 2, 3], [4, 3, 5]], [], 240, 4 * 31),
        ("baddbmm", [[4, 2, 5], [4, 2, 3], [4, 3, 5]], [], 240, 4 * 31 + 40),
        ("linear", [[7, 2, 3], [5, 3], [5]], [], 2 * 14 * 3 * 5, 42 + 15 + 70 + 5),
        # 1 x 3 x 8 x 8 by 16 windows of 3 x 3, stride 2, padding 1: 4 x 4 out
        (
            "conv2d",
            [[1, 3, 8, 8], [16, 3, 3, 3], [16], [], [], [], []],
            ["", "", "", [2, 2], [1, 1], [1, 1], 1],
            2 * 16 * 16 * 27,
            192 + 432 + 256,
        ),
        # groups: 16 channels in 4 groups, so the weight holds 4 of them
        (
            "convolution",
            [[2, 16, 5, 5], [8, 4, 3, 3], []],
            ["", "", "", [1, 1], [0, 0], [1, 1], False, [0, 0], 4],
            2 * 2 * 9 * 8 * 36,
            800 + 288 + 144,
        ),
        (
            "convolution_backward",
            [[1, 16, 4, 4], [1, 3, 8, 8], [16, 3, 3, 3]],
            ["", "", "", "[True, True, False]"],
            2 * (2 * 16 * 16 * 27),
            2 * (192 + 432 + 256),
        ),
        # 2 x 4 heads, 6 queries, 10 keys, width 8: two products of 6 x 10 x 8
        (
            "scaled_dot_product_attention",
            [[2, 4, 6, 8], [2, 4, 10, 8], [2, 4, 10, 8]],
            ["", "", "", "", "0.", "False"],
            2 * (2 * 8 * 6 * 10 * 8),
            8 * (48 + 80 + 80 + 48),
        ),
        (
            "scaled_dot_product_attention",
            [[1, 1, 6, 8], [1, 1, 6, 8], [1, 1, 6, 8]],
            ["", "", "", "", "0.", "True"],
            2 * 6 * 6 * 8,  # half the pairs
            4 * 48,
        ),
    ],
)
def test_effort(name, dims, values, flops, elements):
    found = call(f"aten::{name}", dims, values)
    assert (found.flops, found.elements) == (flops, elements)


@pytest.mark.parametrize(
    ("name", "dims"),
    [
        ("aten::mm", [[2, 3], [4, 5]]),
        ("aten::mm", []),
        ("aten::mm", [[], [[2, 3]]]),
        ("aten::conv2d", [[1, 3, 8, 8], [16, 3, 3, 3]]),  # stride not recorded
        ("aten::add", [[2], [2]]),
    ],
)
def test_what_shapes_do_not_tell_is_not_guessed(name, dims):
    assert call(name, dims) is None


def gemm(**args: object) -> tuple[tiny.Event, ...]:
    """A 4096-cube in half precision that takes 1 ms: 137.4 TFLOPS."""
    dims = {"Input Dims": [[4096, 4096], [4096, 4096]], "Input type": ["c10::Half"] * 2} | args
    return (
        tiny.operator("aten::mm", 1000, 30, **{"External id": 1}, **dims),
        tiny.kernel(1100, 1000, name="ampere_fp16_s16816gemm_fp16_nn", **{"External id": 1}),
    )


def test_against_the_peaks_of_the_device():
    (row,) = roofline(tiny.session(*gemm(), deviceProperties=A100)).to_dict("records")
    assert row["peaks"] == "A100 80GB SXM"
    assert row["tflops"] == pytest.approx(2 * 4096**3 / 1e-3 / 1e12)
    assert row["gbs"] == pytest.approx(3 * 4096**2 * 2 / 1e-3 / 1e9)
    assert row["arithmetic"] == "fp16"
    assert row["bound"] == "compute"
    assert row["roof_share"] == pytest.approx(2 * 4096**3 / 312e12 / 1e-3)


def test_single_precision_on_tensor_cores_is_tf32():
    events = gemm(**{"Input type": ["float", "float"]})
    (row,) = roofline(tiny.session(*events, deviceProperties=A100)).to_dict("records")
    assert (row["arithmetic"], row["peak_tflops"]) == ("tf32", 156)


def test_an_unknown_device_has_no_roof():
    other = [{"id": 0, "name": "A card of nobody"}]
    (row,) = roofline(tiny.session(*gemm(), deviceProperties=other)).to_dict("records")
    assert row["tflops"] == pytest.approx(137.4, abs=0.1)
    assert row["peaks"] is None
    assert math.isnan(row["roof_share"])


def test_without_shapes():
    events = (
        tiny.operator("aten::mm", 1000, 30, **{"External id": 1}),
        tiny.kernel(1100, 10, **{"External id": 1}),
    )
    with pytest.raises(NotAnswerableError, match="with its shapes"):
        roofline(tiny.session(*events))


@pytest.mark.parametrize(
    ("name", "memory", "device"),
    [
        ("Tesla V100-SXM2-16GB", 16_945_512_448, "V100 SXM2"),
        ("Tesla V100-DGXS-32GB", 34_084_028_416, "V100 SXM2"),
        ("NVIDIA A100-PG509-200", 42_297_524_224, "A100 40GB"),
        ("NVIDIA A100 80GB PCIe", 84_990_623_744, "A100 80GB PCIe"),
        ("NVIDIA H100 80GB HBM3", 85_018_279_936, "H100 SXM"),
        ("NVIDIA H100 PCIe", 85_000_000_000, "H100 PCIe"),
        ("NVIDIA H200", 150_000_000_000, "H200 SXM"),
        ("NVIDIA B200", 191_503_138_816, "B200"),
        ("AMD Instinct MI250X/MI250", 68_702_699_520, "MI250X, one die"),
        ("AMD Instinct MI300X VF", 205_571_227_648, "MI300X"),
        ("AMD Instinct MI300A", 137_000_000_000, "MI300A"),
        ("AMD Instinct MI350X", 309_000_000_000, "MI350X"),
        ("AMD Instinct MI325X", 274_000_000_000, "MI325X"),
        ("AMD Instinct MI355X", 309_000_000_000, "MI355X"),
        ("NVIDIA GeForce RTX 2080 Ti", 11_554_586_624, "RTX 2080 Ti"),
        ("NVIDIA GeForce RTX 4090", 25_000_000_000, "RTX 4090"),
        ("NVIDIA L40S", 47_000_000_000, "L40S"),
        ("NVIDIA H100", 102_085_492_736, None),  # a variant no sheet is known of
        ("NVIDIA B300 SXM6 AC", 287_416_123_392, None),
        ("AMD Radeon Graphics", 68_702_699_520, None),
        ("", None, None),
    ],
)
def test_devices_by_the_names_in_traces(name, memory, device):
    found = peaks_of(name, memory)
    assert (found and found.device) == device


def test_every_peak_names_its_source():
    for peaks in known_peaks():
        assert peaks.source
        assert peaks.bandwidth_gbs > 500
        assert peaks.tflops["fp32"] < peaks.tflops["fp16"]  # dense matrix units are faster


@pytest.mark.parametrize(
    ("name", "of", "share"), [("MI300A", "MI300X", 228 / 304), ("MI350X", "MI355X", 2200 / 2400)]
)
def test_variants_of_one_chip_differ_by_their_units_or_clock(name, of, share):
    less, more = (peaks_of(f"AMD Instinct {which}").tflops for which in (name, of))
    assert set(less) == set(more)
    for kind, rate in less.items():
        assert rate == pytest.approx(share * more[kind], rel=0.001)


def test_which_devices_have_tensor_cores():
    assert has_tensor_cores("Tesla V100-SXM2-16GB", 7) is True
    assert has_tensor_cores("Quadro GP100", 6) is False
    assert has_tensor_cores("NVIDIA GeForce GTX 1660 Ti", 7) is False
    assert has_tensor_cores("AMD Instinct MI210", 9) is True
    assert has_tensor_cores("AMD Radeon Graphics", 9) is None


def test_the_share_of_the_device_and_the_window():
    """A second kernel, of no operator, takes 3 ms: the product holds a quarter."""
    events = (*gemm(), tiny.kernel(2100, 3000))
    session = tiny.session(*events, deviceProperties=A100)
    (row,) = roofline(session).to_dict("records")
    assert (row["kind"], row["share"]) == ("matrix product", 0.25)
    cut = TimeWindow(0, 600_000)  # of a call that the window cuts the rate is not known
    with pytest.raises(NotAnswerableError, match="launched work here"):
        roofline(session, window=cut)


def test_without_shapes_the_share_that_they_would_explain_is_said():
    bare = gemm(**{"Input Dims": [], "Input type": []})
    with pytest.raises(NotAnswerableError, match=r"take 25\.0 % of the device's time") as error:
        roofline(tiny.session(*bare, tiny.kernel(2100, 3000)))
    assert "record_shapes=True" in error.value.remedy


def test_real_products_stay_below_the_roof(corpus):
    """No product of more than 10 us on an H100 comes out faster than the device can."""
    file = corpus / "kineto/tracelens-qwen-h100-mi300/h100.Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"
    found = roofline(maiprof_nb.load(file))
    linear = found[(found["name"] == "aten::linear") & (found["device_ns"] > 1e6)]
    assert len(linear) >= 3
    assert linear["roof_share"].between(0.3, 1).all()


def test_autocast_calls_an_operator_again_with_its_inputs_cast():
    """As torch does it: the outer call has single-precision inputs, the inner one halves."""
    dims = {"Input Dims": [[64, 512], [256, 512], [256]]}
    trace = tiny.session(
        tiny.operator(
            "aten::linear", 1000, 30, **dims, **{"External id": 1, "Input type": ["float"] * 3}
        ),
        tiny.operator("aten::_to_copy", 1001, 5, **{"External id": 2}),
        tiny.operator(
            "aten::linear", 1010, 9, **dims, **{"External id": 3, "Input type": ["c10::Half"] * 3}
        ),
        tiny.operator("aten::addmm", 1011, 7, **{"External id": 4}),
        tiny.kernel(1020, 10, name="void at::native::cast", **{"External id": 2}),
        tiny.kernel(1040, 40, name="ampere_fp16_s16816gemm", **{"External id": 4}),
    )
    (found,) = matrix_calls(trace).to_dict("records")
    assert (found["type"], found["calls"], found["device_ns"]) == ("c10::Half", 1, 40_000)
