"""Host threads and device streams on one clock, and everything that happens on them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from maiprof_nb.collection.simulation.allocator import CachingAllocator, Frames
from maiprof_nb.collection.simulation.device import Device, Kernel
from maiprof_nb.collection.simulation.inputs import Input, described

PID = 4021
COMPUTE_STREAM = 7
HOST_TICK_NS = 10
DEVICE_TICK_NS = 32  # the resolution of the device's own time stamps
LAUNCH_LATENCY_NS = 2_080
QUEUE_GAP_NS = 928  # between two kernels that were both waiting
FRAME_ENTER_NS = 1_240
_PINNED = 2  # times the rate of pageable memory
OPERATOR_ENTER_NS = 10_400  # shapes and stacks are being recorded
OPERATOR_LEAVE_NS = 2_100


@dataclass(slots=True)
class HostEvent:
    """A range on a host thread; `end_ns` is 0 while it is open."""

    category: str
    name: str
    tid: int
    start_ns: int
    args: dict[str, Any]
    end_ns: int = 0


@dataclass(frozen=True, slots=True)
class Activity:
    """Work on the device, and the host call that launched it."""

    category: str
    name: str
    stream: int
    start_ns: int
    end_ns: int
    launch: HostEvent
    phase: str
    kernel: Kernel | None = None
    size_bytes: int = 0

    @property
    def dur_ns(self) -> int:
        """Time on the device."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class Flow:
    """An arrow from a forward operator to its backward one."""

    flow_id: int
    start: HostEvent
    finish: HostEvent


@dataclass(frozen=True, slots=True)
class PhaseSpan:
    """One stretch of a phase on the host."""

    phase: str
    step: int
    start_ns: int
    end_ns: int


@dataclass(slots=True)
class Frame:
    """A Python function being executed: where it begins, and the line it has reached."""

    file: str
    first_line: int
    function: str
    line: int


@dataclass
class Machine:
    """One process on one device.

    Control passes from thread to thread (a thread that waits does not act), so the causes
    and phases of the training form one sequence whatever thread carries them.
    """

    device: Device
    seed: int
    host_events: list[HostEvent] = field(default_factory=list)
    activities: list[Activity] = field(default_factory=list)
    flows: list[Flow] = field(default_factory=list)
    phases: list[PhaseSpan] = field(default_factory=list)
    causes: list[tuple[int, str]] = field(default_factory=list)
    threads: dict[int, str] = field(default_factory=dict)
    waits: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.allocator = CachingAllocator(self.device.allocatable_bytes)
        self.phase = "other"
        self.step = -1
        self._random = random.Random(self.seed)  # noqa: S311 - jitter, and it must repeat
        self._stream_free_at: dict[int, int] = {}
        self._last_ids = dict.fromkeys(("external", "correlation", "python", "sequence", "flow"), 0)
        self._stacks: dict[tuple[tuple[str, int, str], ...], Frames] = {}

    def next_id(self, kind: str) -> int:
        """The next number of its kind, from 1."""
        self._last_ids[kind] += 1
        return self._last_ids[kind]

    def jitter(self, ns: int) -> int:
        """About `ns`: 6 % either way, in ticks of the host's clock."""
        factor = 0.94 + 0.12 * self._random.random()
        return max(HOST_TICK_NS, int(ns * factor) // HOST_TICK_NS * HOST_TICK_NS)

    def run(self, stream: int, not_before_ns: int, dur_ns: int) -> tuple[int, int]:
        """Start and end of work on a stream: after its launch and after what was queued."""
        free_at = self._stream_free_at.get(stream, 0)
        start = max(not_before_ns, free_at + QUEUE_GAP_NS)
        start = -(-start // DEVICE_TICK_NS) * DEVICE_TICK_NS
        slower = self.device.clock_mhz / self.device.clock_at(start)
        dur = int(dur_ns * slower * (0.985 + 0.03 * self._random.random()))
        end = start + max(DEVICE_TICK_NS, dur // DEVICE_TICK_NS * DEVICE_TICK_NS)
        self._stream_free_at[stream] = end
        return start, end

    def stream_end(self, stream: int) -> int:
        """When everything queued on a stream so far is done."""
        return self._stream_free_at.get(stream, 0)

    def frames(self, stack: tuple[tuple[str, int, str], ...]) -> Frames:
        """A stack (innermost first) as the allocator logs it; equal stacks are one object."""
        if stack not in self._stacks:
            self._stacks[stack] = [
                {"filename": file, "line": line, "name": function} for file, line, function in stack
            ]
        return self._stacks[stack]

    @contextmanager
    def in_phase(self, phase: str, thread: Thread) -> Iterator[None]:
        """Mark what happens inside as part of `phase`."""
        outer, self.phase, start = self.phase, phase, thread.now_ns
        yield
        self.phases.append(PhaseSpan(phase, self.step, start, thread.now_ns))
        self.phase = outer

    @contextmanager
    def because(self, cause: str, thread: Thread) -> Iterator[None]:
        """Say what keeps the host from launching inside."""
        outer = self.causes[-1][1] if self.causes else "Python"
        self.causes.append((thread.now_ns, cause))
        yield
        self.causes.append((thread.now_ns, outer))


class Thread:
    """One host thread: a clock that its own calls move, and the calls that are open."""

    def __init__(
        self, machine: Machine, tid: int, name: str, now_ns: int, base: tuple[str, ...] = ()
    ) -> None:
        self.machine = machine
        self.tid = tid
        self.now_ns = now_ns
        self.python: list[tuple[int, Frame | None]] = []
        self.operators: list[HostEvent] = []
        self._base = tuple(("??", 0, function) for function in base)
        machine.threads[tid] = name

    def work(self, ns: int) -> None:
        """Be busy for about `ns`."""
        self.now_ns += self.machine.jitter(ns)

    @contextmanager
    def _range(self, category: str, name: str, args: dict[str, Any]) -> Iterator[HostEvent]:
        event = HostEvent(category, name, self.tid, self.now_ns, args)
        self.machine.host_events.append(event)
        yield event
        event.end_ns = self.now_ns

    @contextmanager
    def _python(self, name: str, frame: Frame | None, **more: int) -> Iterator[None]:
        python_id = self.machine.next_id("python")
        parent = self.python[-1][0] if self.python else None
        args = {"Python parent id": parent, "Python id": python_id, **more}
        with self._range("python_function", name, args):
            self.python.append((python_id, frame))
            self.work(FRAME_ENTER_NS)
            yield
            self.work(FRAME_ENTER_NS // 2)
            self.python.pop()

    @contextmanager
    def frame(self, file: str, first_line: int, function: str, line: int = 0) -> Iterator[Frame]:
        """Call a Python function and stand at `line` in it."""
        frame = Frame(file, first_line, function, line or first_line + 1)
        with self._python(f"{file}({first_line}): {function}", frame):
            yield frame

    @contextmanager
    def builtin(self, name: str) -> Iterator[None]:
        """Call a function written in C."""
        with self._python(name, None):
            yield

    @contextmanager
    def module(self, class_name: str, number: int) -> Iterator[None]:
        """Call an ``nn.Module``."""
        with self._python(
            f"nn.Module: {class_name}_{number}", None, **{"Python module id": number}
        ):
            yield

    @contextmanager
    def operator(
        self,
        name: str,
        inputs: Sequence[Input] | None = None,
        *,
        sequence: int | None = None,
        fwd_thread: int = 0,
    ) -> Iterator[HostEvent]:
        """Call a framework operator; `sequence` and `fwd_thread` tie forward to backward."""
        args: dict[str, Any] = {"External id": self.machine.next_id("external")}
        if sequence is not None:
            args["Sequence number"] = sequence
            args["Fwd thread id"] = fwd_thread
        args["Record function id"] = 0
        if inputs is not None:
            args |= described(inputs)
        with self._range("cpu_op", name, args) as event:
            self.operators.append(event)
            self.work(OPERATOR_ENTER_NS)
            yield event
            self.work(OPERATOR_LEAVE_NS)
            self.operators.pop()

    @contextmanager
    def annotation(self, name: str) -> Iterator[HostEvent]:
        """A named range."""
        args = {"External id": self.machine.next_id("external"), "Record function id": 0}
        with self._range("user_annotation", name, args) as event:
            yield event

    @property
    def external_id(self) -> int:
        """Id of the innermost operator; 0 outside of all."""
        return int(self.operators[-1].args["External id"]) if self.operators else 0

    def _call(self, name: str, cbid: int, ns: int) -> HostEvent:
        args: dict[str, Any] = {"External id": self.external_id} if self.operators else {}
        args |= {"cbid": cbid, "correlation": self.machine.next_id("correlation")}
        with self._range("cuda_runtime", name, args) as event:
            self.work(ns)
        return event

    def launch(self, kernel: Kernel, stream: int = COMPUTE_STREAM) -> None:
        """Queue a kernel."""
        call = self._call("cudaLaunchKernel", 211, 5_300)
        span = self.machine.run(stream, call.end_ns + LAUNCH_LATENCY_NS, kernel.dur_ns)
        self.machine.activities.append(
            Activity("kernel", kernel.name, stream, *span, call, self.machine.phase, kernel)
        )

    def fill(self, size_bytes: int, stream: int = COMPUTE_STREAM) -> None:
        """Queue a memset."""
        call = self._call("cudaMemsetAsync", 51, 4_100)
        dur = 1_400 + int(size_bytes / self.machine.device.bytes_per_s * 1e9)
        span = self.machine.run(stream, call.end_ns + LAUNCH_LATENCY_NS, dur)
        self.machine.activities.append(
            Activity(
                "gpu_memset",
                "Memset (Device)",
                stream,
                *span,
                call,
                self.machine.phase,
                None,
                size_bytes,
            )
        )

    def copy(self, direction: str, size_bytes: int, stream: int = COMPUTE_STREAM) -> None:
        """Copy between host and device, and wait for it unless the host's side is pinned."""
        call = self._call("cudaMemcpyAsync", 41, 9_400)
        pinned = direction.startswith("Memcpy HtoD (Pinned")
        rate = self.machine.device.copy_bytes_per_s * (_PINNED if pinned else 1)
        dur = 1_500 + int(size_bytes / rate * 1e9)
        span = self.machine.run(stream, call.end_ns + LAUNCH_LATENCY_NS, dur)
        self.machine.activities.append(
            Activity(
                "gpu_memcpy", direction, stream, *span, call, self.machine.phase, None, size_bytes
            )
        )
        if not pinned:
            self.wait("cudaStreamSynchronize", 131, stream)

    def wait(self, name: str, cbid: int, stream: int = COMPUTE_STREAM) -> None:
        """Wait until everything queued on the stream is done."""
        call = self._call(name, cbid, 2_400)
        done = self.machine.stream_end(stream)
        if done > self.now_ns:
            tick = -(-(done + 4_000) // HOST_TICK_NS) * HOST_TICK_NS
            self.now_ns = call.end_ns = tick
        self.machine.waits.append((done, self.now_ns))

    def stack(self) -> Frames:
        """The Python lines (innermost first) below the operators that are open."""
        operators = tuple(
            ("??", 0, f"at::_ops::{op.name.removeprefix('aten::')}::call")
            for op in reversed(self.operators)
            if op.name.startswith("aten::")
        )
        python = tuple(
            (frame.file, frame.line, frame.function)
            for _, frame in reversed(self.python)
            if frame is not None
        )
        return self.machine.frames(operators + python + self._base)

    def allocate(self, size_bytes: int) -> int:
        """Address of fresh device memory."""
        return self.machine.allocator.allocate(size_bytes, self.now_ns, self.stack())

    def free(self, address: int) -> None:
        """Give device memory back."""
        self.machine.allocator.free(address, self.now_ns, self.stack())
