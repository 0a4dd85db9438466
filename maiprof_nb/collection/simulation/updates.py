"""AdamW: one tensor at a time, or all of them with a few kernels; and the gradient scaler."""

from __future__ import annotations

from maiprof_nb.collection.simulation import kernels
from maiprof_nb.collection.simulation.inputs import ABSENT, Input, array, listed, scalar
from maiprof_nb.collection.simulation.layers import Parameter
from maiprof_nb.collection.simulation.machine import COMPUTE_STREAM, Thread
from maiprof_nb.collection.simulation.tensors import drop_all, empty

_ADAM = "torch/optim/adam.py"
_OPTIMIZER = "torch/optim/optimizer.py"
_PYTHON_NS = 14_500  # between two tensor calls of an optimizer written in Python
# operator, functor, arrays of the parameter's size that it reads and writes
_SINGLE = (
    (
        "aten::mul_",
        kernels.MULTIPLY,
        2,
    ),
    ("aten::lerp_", "lerp_scalar_kernel(at::TensorIteratorBase&, c10::Scalar const&)", 3),
    (
        "aten::mul_",
        kernels.MULTIPLY,
        2,
    ),
    ("aten::addcmul_", "addcmul_cuda_kernel(at::TensorIteratorBase&, c10::Scalar const&)", 4),
    ("aten::sqrt", "sqrt_kernel_cuda(at::TensorIteratorBase&)", 2),
    (
        "aten::div",
        "BUnaryFunctor<float, float, float, at::native::binary_internal::DivFunctor<float> >",
        2,
    ),
    ("aten::add_", "CUDAFunctorOnSelf_add<float>", 2),
    ("aten::addcdiv_", "addcdiv_cuda_kernel(at::TensorIteratorBase&, c10::Scalar const&)", 4),
)
_FOREACH = (
    ("aten::_foreach_mul_", "BinaryOpScalarFunctor<float, 1, 1, 0>", 2),
    ("aten::_foreach_lerp_", "TernaryOpScalarFunctor<float, 2, 2, 0>", 3),
    ("aten::_foreach_mul_", "BinaryOpScalarFunctor<float, 1, 1, 0>", 2),
    ("aten::_foreach_addcmul_", "PointwiseOpScalarFunctor<float, 3, 3, 0>", 4),
    ("aten::_foreach_sqrt", "UnaryOpFunctor<float, 2, 1, 1>", 2),
    ("aten::_foreach_div_", "BinaryOpScalarListFunctor<float, 1, 1, 0>", 2),
    ("aten::_foreach_add_", "BinaryOpScalarFunctor<float, 1, 1, 0>", 2),
    ("aten::_foreach_addcdiv_", "PointwiseOpScalarListFunctor<float, 3, 3, 0>", 4),
)
# operands of the parameter's size, and whether a number follows
_OPERANDS: dict[str, tuple[int, bool]] = {
    "mul": (1, True),
    "lerp": (2, True),
    "addcmul": (3, True),
    "sqrt": (1, False),
    "div": (1, True),
    "add": (1, True),
    "addcdiv": (3, True),
}
_LIKE = (ABSENT, ABSENT, ABSENT, ABSENT, scalar(1))
_SCALE = (
    array(()), array((), "int"), array(()), scalar(2.0), scalar(0.5), scalar(2000),
)  # fmt: skip
_TEMPORARY = ("aten::sqrt", "aten::div", "aten::_foreach_sqrt")


def _arguments(name: str, operand: Input, number: Input) -> list[Input]:
    """What an operator of the optimizer is given."""
    kind = name.removeprefix("aten::").removeprefix("_foreach_").rstrip("_")
    operands, numbered = _OPERANDS[kind]
    return [operand] * operands + [number] * numbered


def zero_grad(thread: Thread, parameters: list[Parameter]) -> None:
    """``optimizer.zero_grad()``: the gradients are let go."""
    with (
        thread.frame("torch/_compile.py", 38, "inner"),
        thread.frame(_OPTIMIZER, 955, "zero_grad"),
        thread.annotation("Optimizer.zero_grad#AdamW.zero_grad"),
    ):
        for parameter in parameters:
            thread.work(700)
            if parameter.grad is not None:
                drop_all(thread, [parameter.grad])
                parameter.grad = None


def step(thread: Thread, parameters: list[Parameter], *, multi_tensor: bool) -> None:
    """``optimizer.step()``."""
    with (
        thread.frame(_OPTIMIZER, 467, "wrapper"),
        thread.annotation("Optimizer.step#AdamW.step"),
        thread.frame(_ADAM, 212, "step"),
    ):
        with thread.frame(_ADAM, 148, "_init_group"):
            _make_moments(thread, parameters)
        with thread.frame(_ADAM, 868, "adam"):
            if multi_tensor:
                with thread.frame(_ADAM, 586, "_multi_tensor_adam"):
                    _all_at_once(thread, parameters)
            else:
                with thread.frame(_ADAM, 345, "_single_tensor_adam"):
                    for parameter in parameters:
                        _one(thread, parameter)


def _make_moments(thread: Thread, parameters: list[Parameter]) -> None:
    for parameter in parameters:
        thread.work(500)
        if parameter.moments:
            continue
        for _ in range(2):
            with thread.operator("aten::zeros_like", [parameter.value.given, *_LIKE]):
                parameter.moments.append(empty(thread, parameter.value.shape))
                thread.fill(parameter.elements * 4)


def _one(thread: Thread, parameter: Parameter) -> None:
    with thread.operator("aten::add_", [array(()), array((), "long int"), scalar(1)]):
        thread.work(700)  # the step counter lives on the host
    temporaries = []
    for name, functor, passes in _SINGLE:
        thread.work(_PYTHON_NS)
        with thread.operator(name, _arguments(name, parameter.value.given, array((), "double"))):
            if name in _TEMPORARY:
                temporaries.append(empty(thread, parameter.value.shape))
            thread.launch(
                kernels.elementwise(thread.machine.device, functor, parameter.elements, passes)
            )
    drop_all(thread, temporaries)


def _all_at_once(thread: Thread, parameters: list[Parameter]) -> None:
    elements = sum(parameter.elements for parameter in parameters)
    counters = [array(()) for _ in parameters]
    values = listed([parameter.value.given for parameter in parameters])
    with thread.operator("aten::_foreach_add_", [listed(counters), scalar(1)]):
        thread.work(1_100 * len(parameters))  # the step counters live on the host
    temporaries = []
    for name, functor, passes in _FOREACH:
        thread.work(_PYTHON_NS + 400 * len(parameters))
        with thread.operator(name, _arguments(name, values, scalar(0.9))):
            if name in _TEMPORARY:
                temporaries += [empty(thread, parameter.value.shape) for parameter in parameters]
            thread.launch(kernels.multi_tensor(thread.machine.device, functor, elements, passes))
    drop_all(thread, temporaries)


def item(thread: Thread) -> None:
    """``tensor.item()``: a copy to the host that everything before it must finish for."""
    with (
        thread.operator("aten::item", [array(())]),
        thread.operator("aten::_local_scalar_dense", [array(())]),
    ):
        thread.copy("Memcpy DtoH (Device -> Pinned)", 4, COMPUTE_STREAM)


def unscale(thread: Thread, parameters: list[Parameter]) -> None:
    """The gradient scaler looks for infinities and divides the gradients by the scale."""
    elements = sum(parameter.elements for parameter in parameters)
    with thread.frame("torch/amp/grad_scaler.py", 281, "_unscale_grads_"):
        thread.work(900 * len(parameters))
        name = "aten::_amp_foreach_non_finite_check_and_unscale_"
        grads = listed([parameter.value.given for parameter in parameters])
        with thread.operator(name, [grads, array(()), array(())]):
            functor = "UnaryOpFunctor<float, 1, 1, 0>"
            thread.launch(kernels.multi_tensor(thread.machine.device, functor, elements, 2))
    with thread.frame("torch/amp/grad_scaler.py", 340, "_maybe_opt_step"):
        item(thread)


def update_scale(thread: Thread) -> None:
    """The gradient scaler's own step."""
    with (
        thread.frame("torch/amp/grad_scaler.py", 484, "update"),
        thread.operator("aten::_amp_update_scale_", _SCALE),
    ):
        functor = "amp_update_scale_cuda_kernel(float*, int*, float const*, double, double, int)"
        thread.launch(kernels.elementwise(thread.machine.device, functor, 1, 2))
