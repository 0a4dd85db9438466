"""What an operator was given, as a trace recorded with ``record_shapes=True`` writes it."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Input:
    """One argument: shape and strides of a tensor (or lists of them), or a plain value."""

    dims: list[Any]
    kind: str
    strides: list[Any]
    value: str = ""

    @property
    def transposed(self) -> Input:
        """The same memory seen with its axes the other way round."""
        return Input(self.dims[::-1], self.kind, self.strides[::-1])


ABSENT = Input([], "", [])


def array(shape: Sequence[int], kind: str = "float") -> Input:
    """A contiguous tensor with elements of a type by its C++ name."""
    inner = itertools.accumulate(reversed(shape[1:]), operator.mul, initial=1)
    return Input(list(shape), kind, list(inner)[: len(shape)][::-1])


def scalar(value: float) -> Input:
    """A number or a flag, with the digits that tell a double."""
    text = f"{value:.17g}" if isinstance(value, float) else str(value)
    return Input([], "Scalar", [], text)


def numbers(values: Iterable[float]) -> Input:
    """A list of plain values."""
    return Input([], "ScalarList", [], str(list(values)))


def listed(inputs: Sequence[Input]) -> Input:
    """A list of tensors."""
    return Input([one.dims for one in inputs], "TensorList", [one.strides for one in inputs])


def described(inputs: Sequence[Input]) -> dict[str, Any]:
    """The arguments of the trace's event."""
    return {
        "Concrete Inputs": [one.value for one in inputs],
        "Input type": [one.kind for one in inputs],
        "Input Strides": [one.strides for one in inputs],
        "Input Dims": [one.dims for one in inputs],
    }
