"""Tensors of the simulated job: device memory with a count of who holds it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from maiprof_nb.collection.simulation.inputs import Input, array
from maiprof_nb.collection.simulation.machine import Thread

_KINDS = {1: "bool", 2: "c10::Half", 4: "float", 8: "long int"}  # by bytes of an element
_CODES = {1: 11, 2: 5, 4: 6, 8: 4}


@dataclass(slots=True)
class Tensor:
    """Device memory of a shape; freed when its last holder lets go."""

    address: int
    shape: tuple[int, ...]
    width: int
    holders: int = 1

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def given(self) -> Input:
        """The tensor as an argument of an operator."""
        return array(self.shape, _KINDS[self.width])


def type_code(width: int) -> int:
    """The number PyTorch gives the type with elements of `width` bytes."""
    return _CODES[width]


def empty(thread: Thread, shape: tuple[int, ...], width: int = 4) -> Tensor:
    """A new tensor with elements of `width` bytes."""
    return Tensor(thread.allocate(math.prod(shape) * width), shape, width)


def hold(tensor: Tensor) -> Tensor:
    """One more holder."""
    tensor.holders += 1
    return tensor


def drop(thread: Thread, *tensors: Tensor) -> None:
    """One holder fewer each; the last one frees the memory."""
    for tensor in tensors:
        tensor.holders -= 1
        if tensor.holders == 0:
            thread.free(tensor.address)


def drop_all(thread: Thread, tensors: list[Tensor]) -> None:
    """Let go of a whole list and empty it."""
    drop(thread, *tensors)
    tensors.clear()
