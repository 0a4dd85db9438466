"""The categorical part of the model: one embedding table a column, side by side with the floats."""

from __future__ import annotations

from maiprof_nb.collection.simulation import kernels
from maiprof_nb.collection.simulation.inputs import Input, listed, scalar
from maiprof_nb.collection.simulation.layers import Layer, Parameter
from maiprof_nb.collection.simulation.machine import Thread
from maiprof_nb.collection.simulation.tensors import Tensor, drop, empty, hold

IDS = 20_000
PRETRAINED_WIDTH = 128
_PLAIN = (scalar(-1), scalar(value=False), scalar(value=False))  # padding, scaling, sparse


class Embeddings(Layer):
    """All categorical columns looked up and concatenated to the numeric ones."""

    file, line, class_name, number = "recommender/model.py", 18, "ColumnEmbeddings", 0

    def __init__(self, thread: Thread, columns: int, width: int, pretrained_items: int) -> None:
        super().__init__()
        self.columns, self.width = columns, width
        self.parameters = [Parameter(thread, (IDS, width)) for _ in range(columns)]
        self.pretrained = empty(thread, (pretrained_items, PRETRAINED_WIDTH))  # frozen
        self.ids: Tensor | None = None

    def forward(self, thread: Thread, inputs: Tensor) -> Tensor:
        """``cat([inputs, table_0(ids[:, 0]), ...])``; `ids` must be set before."""
        if self.ids is None:
            raise ValueError("set ids first")
        device, rows = thread.machine.device, inputs.shape[0]
        ids = self._column(rows)
        with self.calling(thread):
            found = [self._pretrained(thread, rows)]
            for column, parameter in enumerate(self.parameters):
                with (
                    thread.module("Embedding", column),
                    thread.frame("torch/nn/modules/sparse.py", 189, "forward"),
                    self.recorded(thread, "aten::embedding", [parameter.value.given, ids, *_PLAIN]),
                    thread.operator("aten::index_select", [parameter.value.given, scalar(0), ids]),
                ):
                    found.append(empty(thread, (rows, self.width)))
                    thread.launch(kernels.index_select(device, rows, self.width))
            columns = listed([inputs.given, *(tensor.given for tensor in found)])
            width = inputs.shape[1] + PRETRAINED_WIDTH + self.columns * self.width
            with (
                thread.builtin("<built-in method cat of type object>"),
                self.recorded(thread, "aten::cat", [columns, scalar(1)]),
            ):
                out = empty(thread, (rows, width))
                thread.launch(kernels.concatenate(device, out.elements))
        drop(thread, *found)
        self.saved.append(hold(self.ids))
        return out

    def _column(self, rows: int) -> Input:
        """One column of the ids."""
        return Input([rows], "long int", [self.columns])

    def _part(self, grad: Tensor) -> Input:
        """One table's columns of the gradient."""
        return Input([grad.shape[0], self.width], "float", [grad.shape[1], 1])

    def _pretrained(self, thread: Thread, rows: int) -> Tensor:
        """The frozen vectors of the items; nothing to differentiate."""
        ids = self._column(rows)
        with (
            thread.module("Embedding", self.columns),
            thread.frame("torch/nn/modules/sparse.py", 189, "forward"),
            thread.operator("aten::embedding", [self.pretrained.given, ids, *_PLAIN]),
            thread.operator("aten::index_select", [self.pretrained.given, scalar(0), ids]),
        ):
            found = empty(thread, (rows, PRETRAINED_WIDTH))
            thread.launch(kernels.index_select(thread.machine.device, rows, PRETRAINED_WIDTH))
        return found

    def backward(self, thread: Thread, grad: Tensor) -> Tensor:
        """Gradients of all tables; there is none for the inputs, so `grad` comes back."""
        device, rows = thread.machine.device, grad.shape[0]
        part, ids = self._part(grad), self._column(rows)
        inputs = [part, ids, scalar(IDS), *_PLAIN[:2]]
        with self.differentiated(thread, "CatBackward0", [grad.given]):
            thread.work(6_000)
        for parameter in reversed(self.parameters):
            with (
                self.differentiated(thread, "EmbeddingBackward0", [part]),
                thread.operator("aten::embedding_dense_backward", inputs),
            ):
                made = empty(thread, parameter.value.shape)
                order = [empty(thread, (rows,), 8), empty(thread, (rows,), 8)]
                thread.fill(made.elements * 4)
                thread.launch(kernels.radix_sort(device, rows))
                thread.launch(kernels.embedding_backward(device, rows, self.width))
                drop(thread, *order)
            self.accumulate(thread, parameter, made)
        drop(thread, *self.saved)
        self.saved.clear()
        return grad
