"""The layers of the job's model: the operators, kernels and memory of both directions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

from maiprof_nb.collection.simulation import kernels
from maiprof_nb.collection.simulation.inputs import ABSENT, Input, numbers, scalar
from maiprof_nb.collection.simulation.machine import Flow, HostEvent, Thread
from maiprof_nb.collection.simulation.tensors import (
    Tensor,
    drop,
    drop_all,
    empty,
    hold,
    type_code,
)

_FORWARD_THREAD = 1  # the number autograd gives the main thread
_DROP = (scalar(0.1), scalar(value=True))  # probability, training


class Parameter:
    """A weight with its gradient and the optimizer's two moments."""

    def __init__(self, thread: Thread, shape: tuple[int, ...]) -> None:
        self.value = empty(thread, shape)
        self.grad: Tensor | None = None
        self.moments: list[Tensor] = []
        self.half: Tensor | None = None

    @property
    def elements(self) -> int:
        """Number of elements."""
        return self.value.elements


class Layer(ABC):
    """One module: `forward` returns its output, `backward` the gradient of its input."""

    file: str
    line: int
    class_name: str
    number: int

    def __init__(self, *, mixed_precision: bool = False) -> None:
        self.mixed_precision = mixed_precision
        self.parameters: list[Parameter] = []
        self.saved: list[Tensor] = []
        self._forward_calls: list[tuple[int, HostEvent]] = []

    @property
    def half_width(self) -> int:
        """Bytes of an element where autocast computes in half precision."""
        return 2 if self.mixed_precision else 4

    @contextmanager
    def calling(self, thread: Thread) -> Iterator[None]:
        """The Python frames of a module's call."""
        with (
            thread.module(self.class_name, self.number),
            thread.frame(self.file, self.line, "forward"),
        ):
            thread.work(3_000)
            yield

    @contextmanager
    def recorded(self, thread: Thread, name: str, inputs: list[Input]) -> Iterator[None]:
        """A forward operator that autograd will come back to."""
        sequence = thread.machine.next_id("sequence")
        with thread.operator(name, inputs, sequence=sequence, fwd_thread=0) as event:
            self._forward_calls.append((sequence, event))
            yield

    @contextmanager
    def differentiated(self, thread: Thread, node: str, inputs: list[Input]) -> Iterator[None]:
        """The backward operator of the last recorded forward one."""
        sequence, forward = self._forward_calls.pop()
        name = f"autograd::engine::evaluate_function: {node}"
        with (
            thread.operator(name, sequence=sequence, fwd_thread=_FORWARD_THREAD),
            thread.operator(node, inputs, sequence=sequence, fwd_thread=_FORWARD_THREAD) as event,
        ):
            flow = thread.machine.next_id("flow")
            thread.machine.flows.append(Flow(flow, forward, event))
            yield

    @abstractmethod
    def forward(self, thread: Thread, inputs: Tensor) -> Tensor:
        """Output of the layer."""

    @abstractmethod
    def backward(self, thread: Thread, grad: Tensor) -> Tensor:
        """Gradient of the input; takes over `grad`."""

    def cast(self, thread: Thread, source: Tensor, width: int) -> Tensor:
        """A copy of `source` with elements of `width` bytes."""
        kind, no = scalar(type_code(width)), scalar(value=False)
        given = source.given
        with (
            thread.operator("aten::to", [given, kind, no, no, ABSENT]),
            thread.operator("aten::_to_copy", [given, kind, ABSENT, ABSENT, ABSENT, no, ABSENT]),
        ):
            layout = [numbers(given.dims), numbers(given.strides), kind, scalar(0), ABSENT, no]
            with thread.operator("aten::empty_strided", layout):
                made = empty(thread, source.shape, width)
            with thread.operator("aten::copy_", [made.given, given, no]):
                thread.launch(kernels.cast(thread.machine.device, source.elements))
        return made

    def accumulate(self, thread: Thread, parameter: Parameter, grad: Tensor) -> None:
        """Hand a parameter its gradient, which it keeps."""
        node = "torch::autograd::AccumulateGrad"
        with thread.operator(f"autograd::engine::evaluate_function: {node}"):
            if grad.width != parameter.value.width:
                half, grad = grad, self.cast(thread, grad, parameter.value.width)
                drop(thread, half)
            with thread.operator(node, [grad.given]), thread.operator("aten::detach", [grad.given]):
                parameter.grad = grad


class Linear(Layer):
    """Matrix product with bias."""

    file, line, class_name = "torch/nn/modules/linear.py", 124, "Linear"

    def __init__(
        self, thread: Thread, number: int, inner: int, columns: int, *, mixed_precision: bool
    ) -> None:
        super().__init__(mixed_precision=mixed_precision)
        self.number, self.inner, self.columns = number, inner, columns
        self.parameters = [Parameter(thread, (columns, inner)), Parameter(thread, (columns,))]

    def forward(self, thread: Thread, inputs: Tensor) -> Tensor:
        """Product, with the casts of autocast before it."""
        weight, bias = (parameter.value.given for parameter in self.parameters)
        with self.calling(thread), thread.builtin("<built-in function linear>"):
            if not self.mixed_precision:
                return self._product(thread, hold(inputs))
            # Autocast casts inside the operator and calls it again with the copies.
            with thread.operator("aten::linear", [inputs.given, weight, bias]):
                source = self.cast(thread, inputs, 2) if inputs.width != 2 else hold(inputs)
                for parameter in self.parameters:
                    parameter.half = self.cast(thread, parameter.value, 2)
                return self._product(thread, source)

    def _product(self, thread: Thread, source: Tensor) -> Tensor:
        """The product itself; keeps `source` for the way back."""
        device, rows, half = thread.machine.device, source.shape[0], self.mixed_precision
        weight, bias = ((one.half or one.value).given for one in self.parameters)
        one = scalar(1)
        with (
            thread.operator("aten::linear", [source.given, weight, bias]),
            self.recorded(thread, "aten::addmm", [bias, source.given, weight.transposed, one, one]),
        ):
            out = empty(thread, (rows, self.columns), self.half_width)
            thread.launch(kernels.gemm(device, rows, self.columns, self.inner, "tn", half=half))
        self.saved.append(source)
        return out

    def backward(self, thread: Thread, grad: Tensor) -> Tensor:
        """Gradients of input, weight and bias."""
        device, rows, half = thread.machine.device, grad.shape[0], self.mixed_precision
        if grad.width != self.half_width:
            single, grad = grad, self._cast_back(thread, grad, self.half_width)
            drop(thread, single)
        weight = (self.parameters[0].half or self.parameters[0].value).given
        with self.differentiated(thread, "AddmmBackward0", [grad.given]):
            with thread.operator("aten::mm", [grad.given, weight]):
                grad_in = empty(thread, (rows, self.inner), self.half_width)
                thread.launch(kernels.gemm(device, rows, self.inner, self.columns, "nn", half=half))
            with thread.operator("aten::mm", [grad.given.transposed, self.saved[-1].given]):
                grad_weight = empty(thread, (self.columns, self.inner), self.half_width)
                thread.launch(kernels.gemm(device, self.columns, self.inner, rows, "nt", half=half))
            over_rows = [grad.given, numbers([0]), scalar(value=True), ABSENT]
            with thread.operator("aten::sum", over_rows):
                grad_bias = empty(thread, (self.columns,), self.half_width)
                functor = (
                    "func_wrapper_t<float, at::native::sum_functor<float, float, float>::operator()"
                )
                thread.launch(kernels.reduce(device, functor, grad.elements, width=self.half_width))
            drop_all(thread, self.saved)
        drop(thread, grad)
        for parameter, made in zip(self.parameters, (grad_weight, grad_bias), strict=True):
            self.accumulate(thread, parameter, made)
            if parameter.half is not None:
                drop(thread, parameter.half)
                parameter.half = None
        if not self.mixed_precision:
            return grad_in
        single = self._cast_back(thread, grad_in, 4)
        drop(thread, grad_in)
        return single

    def _cast_back(self, thread: Thread, grad: Tensor, width: int) -> Tensor:
        node = "ToCopyBackward0"
        with (
            thread.operator(f"autograd::engine::evaluate_function: {node}"),
            thread.operator(node, [grad.given]),
        ):
            return self.cast(thread, grad, width)


class LayerNorm(Layer):
    """Layer norm; autocast computes it in single precision."""

    file, line, class_name = "torch/nn/modules/normalization.py", 216, "LayerNorm"

    def __init__(self, thread: Thread, number: int, columns: int) -> None:
        super().__init__()
        self.number, self.columns = number, columns
        self.parameters = [Parameter(thread, (columns,)), Parameter(thread, (columns,))]

    def forward(self, thread: Thread, inputs: Tensor) -> Tensor:
        """Normalised rows."""
        rows = inputs.shape[0]
        affine = [parameter.value.given for parameter in self.parameters]
        shape, epsilon = numbers([self.columns]), scalar(1e-5)
        cudnn = scalar(value=True)
        with (
            self.calling(thread),
            thread.builtin("<built-in method layer_norm of type object>"),
            thread.operator("aten::layer_norm", [inputs.given, shape, *affine, epsilon, cudnn]),
        ):
            source = self.cast(thread, inputs, 4) if inputs.width != 4 else hold(inputs)
            norm = [source.given, shape, *affine, epsilon]
            with self.recorded(thread, "aten::native_layer_norm", norm):
                out = empty(thread, inputs.shape)
                statistics = [empty(thread, (rows, 1)), empty(thread, (rows, 1))]
                thread.launch(kernels.layer_norm(thread.machine.device, rows, self.columns))
            self.saved += [source, *statistics]
        return out

    def backward(self, thread: Thread, grad: Tensor) -> Tensor:
        """Gradients of input, weight and bias."""
        device, rows = thread.machine.device, grad.shape[0]
        saved = [tensor.given for tensor in self.saved]
        affine = [parameter.value.given for parameter in self.parameters]
        wanted = numbers([True, True, True])
        inputs = [grad.given, saved[0], numbers([self.columns]), *saved[1:], *affine, wanted]
        with (
            self.differentiated(thread, "NativeLayerNormBackward0", [grad.given]),
            thread.operator("aten::native_layer_norm_backward", inputs),
        ):
            made = [empty(thread, grad.shape), *(empty(thread, (self.columns,)) for _ in range(2))]
            thread.launch(kernels.layer_norm_grad_input(device, rows, self.columns))
            thread.launch(kernels.layer_norm_grad_weight(device, rows, self.columns))
        drop_all(thread, self.saved)
        drop(thread, grad)
        for parameter, given in zip(self.parameters, made[1:], strict=True):
            self.accumulate(thread, parameter, given)
        return made[0]


class Gelu(Layer):
    """Gaussian error linear unit."""

    file, line, class_name = "torch/nn/modules/activation.py", 733, "GELU"

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def forward(self, thread: Thread, inputs: Tensor) -> Tensor:
        """Pointwise; keeps its input."""
        with (
            self.calling(thread),
            thread.builtin("<built-in function gelu>"),
            self.recorded(thread, "aten::gelu", [inputs.given, ABSENT]),
        ):
            out = empty(thread, inputs.shape)
            functor = "GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)"
            thread.launch(kernels.elementwise(thread.machine.device, functor, out.elements, 2))
            self.saved.append(hold(inputs))
        return out

    def backward(self, thread: Thread, grad: Tensor) -> Tensor:
        """Pointwise."""
        with (
            self.differentiated(thread, "GeluBackward0", [grad.given]),
            thread.operator("aten::gelu_backward", [grad.given, self.saved[-1].given, ABSENT]),
        ):
            out = empty(thread, grad.shape)
            functor = "GeluBackwardCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)"
            thread.launch(kernels.elementwise(thread.machine.device, functor, out.elements, 3))
        drop_all(thread, self.saved)
        drop(thread, grad)
        return out


class Dropout(Layer):
    """Dropout; keeps its mask of one byte an element."""

    file, line, class_name = "torch/nn/modules/dropout.py", 69, "Dropout"

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def forward(self, thread: Thread, inputs: Tensor) -> Tensor:
        """Some elements set to zero."""
        with (
            self.calling(thread),
            thread.builtin("<built-in function dropout>"),
            thread.operator("aten::dropout", [inputs.given, *_DROP]),
            self.recorded(thread, "aten::native_dropout", [inputs.given, *_DROP]),
        ):
            out = empty(thread, inputs.shape)
            self.saved.append(empty(thread, inputs.shape, 1))
            thread.launch(kernels.dropout(thread.machine.device, out.elements))
        return out

    def backward(self, thread: Thread, grad: Tensor) -> Tensor:
        """The mask again."""
        mask = self.saved[-1].given
        with (
            self.differentiated(thread, "NativeDropoutBackward0", [grad.given]),
            thread.operator("aten::native_dropout_backward", [grad.given, mask, scalar(1 / 0.9)]),
        ):
            out = empty(thread, grad.shape)
            functor = "masked_scale_kernel<bool, float, float>(at::Tensor&, at::Tensor const&)"
            thread.launch(kernels.elementwise(thread.machine.device, functor, out.elements, 2.25))
        drop_all(thread, self.saved)
        drop(thread, grad)
        return out
