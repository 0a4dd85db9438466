"""The training job: one process that trains a click model on a table too large for memory."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from maiprof_nb.collection.simulation import kernels, updates
from maiprof_nb.collection.simulation.device import Device
from maiprof_nb.collection.simulation.embeddings import PRETRAINED_WIDTH, Embeddings
from maiprof_nb.collection.simulation.inputs import ABSENT, array, scalar
from maiprof_nb.collection.simulation.layers import (
    Dropout,
    Gelu,
    Layer,
    LayerNorm,
    Linear,
    Parameter,
)
from maiprof_nb.collection.simulation.machine import PID, Flow, HostEvent, Machine, Thread
from maiprof_nb.collection.simulation.scenarios import Scenario
from maiprof_nb.collection.simulation.table import CATEGORICAL_COLUMNS, WorkerPool
from maiprof_nb.collection.simulation.tensors import (
    Tensor,
    drop,
    drop_all,
    empty,
    hold,
    type_code,
)

HIDDEN = 512
EMBEDDING_WIDTH = 32
BACKWARD_TID = 4077
EPOCH_NS = 1_772_442_000_000_000_000  # 2026-03-02 09:00:00 UTC, when the simulated job starts
_TRAIN = "recommender/train.py"
_IMPORTS_NS = 1_900_000_000
_SHUTDOWN_NS = 600_000_000
_ENGINE = (
    "torch::autograd::Engine::evaluate_function",
    "torch::autograd::Engine::thread_main",
    "torch::autograd::python::PythonEngine::thread_init",
    "clone",
)


@dataclass
class Run:
    """A finished run; `steps` are the recorded ones as (number, start, end)."""

    scenario: Scenario
    machine: Machine
    record_from_ns: int = 0
    record_to_ns: int = 0
    end_ns: int = 0
    steps: list[tuple[int, int, int]] = field(default_factory=list)
    leaked: list[Tensor] = field(default_factory=list)


class Model:
    """Embeddings, a stack of hidden blocks and a head with one output."""

    def __init__(self, thread: Thread, scenario: Scenario) -> None:
        half = scenario.mixed_precision
        linears = itertools.count()
        width = scenario.numeric_columns + PRETRAINED_WIDTH + CATEGORICAL_COLUMNS * EMBEDDING_WIDTH
        items = scenario.pretrained_items
        self.embeddings = Embeddings(thread, CATEGORICAL_COLUMNS, EMBEDDING_WIDTH, items)
        self.layers: list[Layer] = [self.embeddings]
        for block in range(scenario.blocks):
            inner = HIDDEN if block else width
            self.layers += [
                Linear(thread, next(linears), inner, HIDDEN, mixed_precision=half),
                LayerNorm(thread, block, HIDDEN),
                Gelu(block),
                Dropout(block),
            ]
        self.layers.append(Linear(thread, next(linears), HIDDEN, 1, mixed_precision=half))

    @property
    def parameters(self) -> list[Parameter]:
        """All weights in the order of the layers."""
        return [parameter for layer in self.layers for parameter in layer.parameters]


class Job:
    """The job's own functions, by the names they have in its Python frames."""

    def __init__(self, run: Run, main: Thread) -> None:
        self.run, self.main, self.machine = run, main, run.machine
        self.scenario = run.scenario
        self.backward_thread = Thread(
            self.machine, BACKWARD_TID, f"thread {BACKWARD_TID} (pt_autograd_0)", 0, _ENGINE
        )
        self.batch: list[Tensor] = []
        self.kept: list[Tensor] = []
        self._loss_call: tuple[int, HostEvent] | None = None

    def main_function(self) -> None:
        """``main()`` of the job."""
        with (
            self.main.frame(_TRAIN, 1, "<module>", 141),
            self.main.frame(_TRAIN, 66, "main", 81) as frame,
        ):
            with self.main.frame("recommender/model.py", 52, "build_model", 60):
                self.model = Model(self.main, self.scenario)
            self.pool = WorkerPool(self.machine, self.scenario, self.main.now_ns)
            frame.line = 96
            last = self.scenario.first_step + self.scenario.steps
            for first in range(0, last, self.scenario.steps_per_epoch):
                self._train_epoch(range(first, min(first + self.scenario.steps_per_epoch, last)))
            self.main.wait("cudaDeviceSynchronize", 165)
            self.run.record_to_ns = self.main.now_ns
        self.pool.close(self.main.now_ns)
        self.run.leaked = self.kept

    def _train_epoch(self, steps: range) -> None:
        """One pass over the sub-dataset in memory."""
        with self.main.frame(_TRAIN, 42, "train_epoch", 44):
            for number in steps:
                if number == self.scenario.first_step:
                    self._start_recording()
                self._step(number, begins=number == steps.start)

    def _start_recording(self) -> None:
        self.main.wait("cudaDeviceSynchronize", 165)
        self.main.work(180_000)
        self.run.record_from_ns = self.main.now_ns
        self.main.work(40_000)

    def _step(self, number: int, *, begins: bool) -> None:
        self.machine.step = number
        with self.main.annotation(f"ProfilerStep#{number}") as step:
            with self.machine.in_phase("data loading", self.main):
                if begins:
                    self.pool.begin_epoch(self.main)
                read = number % self.scenario.steps_per_sub_dataset == 0
                self.pool.next_batch(self.main, read=read)
            drop_all(self.main, self.batch)
            self._train_step()
            self.main.work(90_000)
        if number >= self.scenario.first_step:
            self.run.steps.append((number, step.start_ns, self.main.now_ns))
        self.main.work(2_000)

    def _train_step(self) -> None:
        main, machine = self.main, self.machine
        with main.frame(_TRAIN, 28, "train_step", 29) as frame:
            with machine.in_phase("other", main), machine.because("input/copy", main):
                for _ in range(self.scenario.sends):
                    self._to_device()
            with machine.because("launch-bound", main):
                with machine.in_phase("other", main):
                    frame.line = 30
                    updates.zero_grad(main, self.model.parameters)
                with machine.in_phase("forward", main):
                    frame.line = 32
                    logits, loss = self._forward()
                with machine.in_phase("backward", main):
                    frame.line = 34
                    self._backward(logits)
                with machine.in_phase("other", main), machine.because("synchronisation", main):
                    frame.line = 35
                    updates.item(main)  # if not math.isfinite(loss.item()): ...
                with machine.in_phase("optimizer", main):
                    frame.line = 37
                    self._update()
            frame.line = 38
            drop(main, loss, logits)

    def _to_device(self) -> None:
        rows = self.scenario.rows_per_batch
        shapes = (
            ((rows, self.scenario.numeric_columns), 4),
            ((rows, CATEGORICAL_COLUMNS), 8),
            ((rows,), 4),
        )
        no = scalar(value=False)
        memory = "Pinned" if self.scenario.pinned else "Pageable"
        with self.main.frame(_TRAIN, 19, "to_device", 22):
            for shape, width in shapes:
                given = Tensor(0, shape, width).given  # on the host
                where = [given, scalar(type_code(width)), scalar(0), ABSENT, ABSENT, no]
                with (
                    self.main.builtin("<built-in method to of Tensor object>"),
                    self.main.operator("aten::to", [*where, no, ABSENT]),
                    self.main.operator("aten::_to_copy", [*where, ABSENT]),
                ):
                    tensor = empty(self.main, shape, width)
                    with self.main.operator("aten::copy_", [tensor.given, given, no]):
                        size_bytes = tensor.elements * width
                        self.main.copy(f"Memcpy HtoD ({memory} -> Device)", size_bytes)
                self.batch.append(tensor)

    def _forward(self) -> tuple[Tensor, Tensor]:
        main, device = self.main, self.machine.device
        x, self.model.embeddings.ids, *_ = self.batch
        with main.module("ClickModel", 0), main.frame("recommender/model.py", 40, "forward", 47):
            for layer in self.model.layers:
                y = layer.forward(main, x)
                if self.scenario.checks:
                    updates.item(main)  # if y.isnan().any(): ...
                if self.scenario.leak and layer is self.model.layers[-1]:
                    self.kept.append(hold(x))
                if x is not self.batch[0]:
                    drop(main, x)
                x = y
        logits = x
        with (
            main.module("BCEWithLogitsLoss", 0),
            main.frame("torch/nn/modules/loss.py", 818, "forward"),
        ):
            sequence = main.machine.next_id("sequence")
            inputs = [logits.given, array(logits.shape), ABSENT, ABSENT, scalar(1)]
            with main.operator(
                "aten::binary_cross_entropy_with_logits", inputs, sequence=sequence, fwd_thread=0
            ) as call:
                rows = empty(main, logits.shape)
                functor = "binary_cross_entropy_with_logits_kernel(at::TensorIteratorBase&)"
                main.launch(kernels.elementwise(device, functor, rows.elements, 3))
                loss = empty(main, (1,))
                main.launch(
                    kernels.reduce(device, "MeanOps<float, float, float, float>", rows.elements)
                )
                drop(main, rows)
            self._loss_call = sequence, call
        return logits, loss

    def _backward(self, logits: Tensor) -> None:
        main, worker, device = self.main, self.backward_thread, self.machine.device
        if self.scenario.mixed_precision:
            with (
                main.frame("torch/amp/grad_scaler.py", 177, "scale"),
                main.operator("aten::mul", [array(()), array(())]),
            ):
                functor = kernels.MULTIPLY
                main.launch(kernels.elementwise(device, functor, 1, 2))
        with (
            main.frame("torch/_tensor.py", 570, "backward"),
            main.frame("torch/autograd/__init__.py", 243, "backward"),
            main.frame("torch/autograd/graph.py", 815, "_engine_run_backward"),
            main.builtin("<built-in method run_backward of torch._C._EngineBase object>"),
        ):
            main.work(26_000)
            worker.now_ns = main.now_ns
            grad = self._loss_backward(worker, logits)
            for layer in reversed(self.model.layers):
                grad = layer.backward(worker, grad)
            drop(worker, grad)
            main.now_ns = worker.now_ns
            main.work(14_000)

    def _loss_backward(self, worker: Thread, logits: Tensor) -> Tensor:
        if self._loss_call is None:
            raise ValueError("there was no forward pass")
        node = "BinaryCrossEntropyWithLogitsBackward0"
        sequence, forward = self._loss_call
        with (
            worker.operator(
                f"autograd::engine::evaluate_function: {node}", sequence=sequence, fwd_thread=1
            ),
            worker.operator(node, [array(())], sequence=sequence, fwd_thread=1) as call,
        ):
            self.machine.flows.append(Flow(self.machine.next_id("flow"), forward, call))
            grad = empty(worker, logits.shape)
            for functor in (
                "sigmoid_kernel_cuda(at::TensorIteratorBase&)",
                "CUDAFunctor_add<float>",
            ):
                worker.launch(kernels.elementwise(self.machine.device, functor, grad.elements, 3))
        return grad

    def _update(self) -> None:
        main, parameters = self.main, self.model.parameters
        if not self.scenario.mixed_precision:
            updates.step(main, parameters, multi_tensor=self.scenario.multi_tensor)
            return
        with main.frame("torch/amp/grad_scaler.py", 363, "step"):
            updates.unscale(main, parameters)
            updates.step(main, parameters, multi_tensor=self.scenario.multi_tensor)
        updates.update_scale(main)


def simulate(scenario: Scenario, device: Device | None = None) -> Run:
    """Run the job in one of its states; the same scenario gives the same run, always."""
    machine = Machine(device or Device(), scenario.seed)
    run = Run(scenario, machine)
    machine.causes.append((0, "Python"))
    main = Thread(machine, PID, f"thread {PID} (python)", _IMPORTS_NS)
    Job(run, main).main_function()
    run.end_ns = main.now_ns + _SHUTDOWN_NS
    return run
