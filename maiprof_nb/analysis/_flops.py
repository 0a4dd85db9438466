"""Arithmetic and traffic of an operator from the shapes of its inputs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Shape = list[int]

# Bytes of an element, and the arithmetic its matrix products are done in.
TYPES: dict[str, tuple[int, str]] = {
    "float": (4, "fp32"),
    "Float": (4, "fp32"),
    "double": (8, "fp64"),
    "Double": (8, "fp64"),
    "c10::Half": (2, "fp16"),
    "c10::BFloat16": (2, "bf16"),
    "c10::Float8_e4m3fn": (1, "fp8"),
    "c10::Float8_e4m3fnuz": (1, "fp8"),
    "c10::Float8_e5m2": (1, "fp8"),
    "c10::Float8_e5m2fnuz": (1, "fp8"),
    "signed char": (1, "int8"),
    "unsigned char": (1, "int8"),
}
HALF = ("c10::Half", "c10::BFloat16")


@dataclass(frozen=True, slots=True)
class Call:
    """What one call of an operator was given, as far as the trace says."""

    dims: list[Any]
    types: list[str]
    values: list[Any]

    def shape(self, place: int) -> Shape | None:
        """Shape of one input; None where it is no tensor or was not recorded."""
        found = self.dims[place] if place < len(self.dims) else None
        if isinstance(found, list) and found and all(isinstance(n, int) for n in found):
            return found
        return None

    def value(self, place: int) -> Any:
        """A list, number or flag among the inputs; None where it was not recorded."""
        written = self.values[place] if place < len(self.values) else None
        if not isinstance(written, str) or not written:
            return None
        try:
            return json.loads(written.replace("True", "true").replace("False", "false"))
        except json.JSONDecodeError:
            return None


@dataclass(frozen=True, slots=True)
class Effort:
    """What one call has to do.

    Parameters
    ----------
    flops : int
        Multiplications and additions of its matrix products.
    elements : int
        Tensor elements that must be read or written at least once.
    matrix : tuple of int
        Rows, columns and inner length of the product, batch left out.
    """

    flops: int
    elements: int
    matrix: tuple[int, int, int]


def parsed(dims: object, types: object, values: object) -> Call:
    """A call from the texts of the table `operators`; anything unreadable is empty."""
    return Call(_list(dims), [str(one) for one in _list(types)], _list(values))


def effort(name: str, call: Call) -> Effort | None:
    """Effort of one call; None where shapes are missing, odd, or the operator is not known."""
    rule = RULES.get(name)
    try:
        return rule(call) if rule else None
    except (IndexError, TypeError, ValueError):
        return None


def kind_of(name: str) -> str:
    """What an operator of `RULES` is: a matrix product, a convolution or attention."""
    if "conv" in name:
        return "convolution"
    return "attention" if "attention" in name else "matrix product"


def _list(text: object) -> list[Any]:
    if not isinstance(text, str):
        return []
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        return []
    return found if isinstance(found, list) else []


def _product(a: Shape | None, b: Shape | None, more: int = 0) -> Effort | None:
    """``[..., m, k] @ [..., k, n]``, with `more` elements read beside."""
    if not a or not b or len(a) < 2 or len(b) < 2 or a[-1] != b[-2]:
        return None
    batch, m, k, n = math.prod(a[:-2]), a[-2], a[-1], b[-1]
    elements = math.prod(a) + math.prod(b) + batch * m * n + more
    return Effort(2 * batch * m * n * k, elements, (m, n, k))


def _of_two(first: int) -> Callable[[Call], Effort | None]:
    def rule(call: Call) -> Effort | None:
        beside = call.shape(0) if first else None
        return _product(
            call.shape(first), call.shape(first + 1), math.prod(beside) if beside else 0
        )

    return rule


def _linear(call: Call) -> Effort | None:
    rows, weight, bias = call.shape(0), call.shape(1), call.shape(2)
    if not rows or not weight or len(weight) != 2:
        return None
    return _product(
        [math.prod(rows[:-1]), rows[-1]], [weight[1], weight[0]], math.prod(bias) if bias else 0
    )


def _convolved(image: Shape, weight: Shape, out: Shape) -> Effort:
    """Effort of one convolution; the product it is has pixels as rows and channels as columns."""
    inner = math.prod(weight[1:])  # channels of a group, and the window
    pixels = out[0] * math.prod(out[2:])
    elements = math.prod(image) + math.prod(weight) + math.prod(out)
    return Effort(2 * pixels * weight[0] * inner, elements, (pixels, weight[0], inner))


def _convolution(stride: int, padding: int, dilation: int) -> Callable[[Call], Effort | None]:
    """Forward convolution whose settings stand at these places of the inputs."""

    def rule(call: Call) -> Effort | None:
        image, weight = call.shape(0), call.shape(1)
        if not image or not weight or len(image) != len(weight) or len(image) < 3:
            return None
        axes = len(image) - 2
        steps = _per_axis(call.value(stride), axes)
        edges = _per_axis(call.value(padding), axes)
        spread = _per_axis(call.value(dilation), axes)
        if steps is None or edges is None or spread is None:
            return None
        size = [
            (image[2 + i] + 2 * edges[i] - spread[i] * (weight[2 + i] - 1) - 1) // steps[i] + 1
            for i in range(axes)
        ]
        return _convolved(image, weight, [image[0], weight[0], *size])

    return rule


def _per_axis(value: Any, axes: int) -> Sequence[int] | None:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, int) and not isinstance(value, bool):
        return [value] * axes
    fits = isinstance(value, list) and len(value) == axes
    return value if fits and all(isinstance(n, int) for n in value) else None


def _convolution_backward(call: Call) -> Effort | None:
    """Gradients of input and weight: a convolution each, where both are asked for."""
    out, image, weight = call.shape(0), call.shape(1), call.shape(2)
    if not out or not image or not weight:
        return None
    wanted = call.value(len(call.values) - 1)
    if not isinstance(wanted, list) or len(wanted) < 2:
        return None
    one = _convolved(image, weight, out)
    times = sum(bool(asked) for asked in wanted[:2])
    return Effort(one.flops * times, one.elements * max(times, 1), one.matrix) if times else None


def _attention(causal: int | None) -> Callable[[Call], Effort | None]:
    """``[batch, heads, length, width]`` queries, keys and values; `causal` = place of the flag."""

    def rule(call: Call) -> Effort | None:
        q, k, v = call.shape(0), call.shape(1), call.shape(2)
        if not q or not k or not v or min(len(q), len(k), len(v)) < 3:
            return None
        queries, keys = q[-2], k[-2]
        pairs = math.prod(q[:-1]) * keys
        if causal is not None and call.value(causal) is True and queries == keys:
            pairs //= 2  # later keys are never looked at
        flops = 2 * pairs * (q[-1] + v[-1])
        out = math.prod(q[:-1]) * v[-1]
        return Effort(
            flops, math.prod(q) + math.prod(k) + math.prod(v) + out, (queries, keys, q[-1])
        )

    return rule


def _untold(_call: Call) -> Effort | None:
    """Operators of torch before 1.11 whose inputs do not tell which gradients were asked for."""
    return None


RULES: dict[str, Callable[[Call], Effort | None]] = {
    "aten::mm": _of_two(0),
    "aten::bmm": _of_two(0),
    "aten::_scaled_mm": _of_two(0),
    "aten::addmm": _of_two(1),
    "aten::addmm_": _of_two(1),
    "aten::_addmm_activation": _of_two(1),
    "aten::baddbmm": _of_two(1),
    "aten::linear": _linear,
    "aten::conv1d": _convolution(3, 4, 5),
    "aten::conv2d": _convolution(3, 4, 5),
    "aten::conv3d": _convolution(3, 4, 5),
    "aten::convolution": _convolution(3, 4, 5),
    "aten::_convolution": _convolution(3, 4, 5),
    "aten::cudnn_convolution": _convolution(3, 2, 4),
    "aten::miopen_convolution": _convolution(4, 3, 5),
    "aten::convolution_backward": _convolution_backward,
    "aten::cudnn_convolution_backward": _untold,
    "aten::cudnn_convolution_backward_input": _untold,
    "aten::cudnn_convolution_backward_weight": _untold,
    "aten::miopen_convolution_backward": _untold,
    "aten::scaled_dot_product_attention": _attention(5),
    "aten::_scaled_dot_product_flash_attention": _attention(4),
    "aten::_scaled_dot_product_efficient_attention": _attention(6),
    "aten::_scaled_dot_product_cudnn_attention": _attention(6),
}
