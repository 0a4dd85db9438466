"""Traces of a few events, written by hand; times in whole microseconds from 1000 on."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from maiprof_nb.loading import kineto
from maiprof_nb.recording import Recording
from maiprof_nb.session import Session

Event = dict[str, Any]
HOST, MAIN, AUTOGRAD = 500, 500, 501


def complete(name: str, category: str, ts: float, dur: float, **more: Any) -> Event:
    """One `ph: X` event of the main thread, or of the `pid` and `tid` given."""
    event = {"ph": "X", "cat": category, "name": name, "pid": HOST, "tid": MAIN}
    return event | {"ts": ts, "dur": dur} | more


def operator(name: str, ts: float, dur: float, *, tid: int = MAIN, **args: Any) -> Event:
    return complete(name, "cpu_op", ts, dur, tid=tid, args=args)


def annotation(name: str, ts: float, dur: float, *, tid: int = MAIN) -> Event:
    return complete(name, "user_annotation", ts, dur, tid=tid)


def python(name: str, ts: float, dur: float, *, tid: int = MAIN) -> Event:
    return complete(name, "python_function", ts, dur, tid=tid)


def launch(
    correlation: int, ts: float, dur: float = 2, *, tid: int = MAIN, name: str = "cudaLaunchKernel"
) -> Event:
    return complete(name, "cuda_runtime", ts, dur, tid=tid, args={"correlation": correlation})


def kernel(
    ts: float,
    dur: float,
    *,
    name: str = "gemm",
    stream: int = 7,
    device: int = 0,
    category: str = "kernel",
    **args: Any,
) -> Event:
    where = {"device": device, "stream": stream}
    return complete(name, category, ts, dur, pid=device, tid=stream, args=where | args)


def memcpy(ts: float, dur: float, **more: Any) -> Event:
    return kernel(ts, dur, name="Memcpy HtoD", category="gpu_memcpy", **more)


def nccl(ts: float, dur: float, **more: Any) -> Event:
    more.setdefault("stream", 20)
    return kernel(ts, dur, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)", **more)


def step(number: int, ts: float, dur: float) -> Event:
    return annotation(f"ProfilerStep#{number}", ts, dur)


def text(events: Iterable[Event], **meta: Any) -> bytes:
    return json.dumps({"schemaVersion": 1, **meta, "traceEvents": list(events)}).encode()


def recording(*events: Event, source: str = "tiny.json", **meta: Any) -> Recording:
    return kineto.read(text(events, **meta), source)


def session(*events: Event, source: str = "tiny.json", **meta: Any) -> Session:
    return Session([recording(*events, source=source, **meta)])


def ranks(*traces: Iterable[Event]) -> Session:
    """One trace a rank, all on one clock."""
    base = {"baseTimeNanoseconds": 1_700_000_000_000_000_000}
    return Session(
        [
            replace(recording(*events, source=f"rank{rank}.json", **base), rank=rank)
            for rank, events in enumerate(traces)
        ]
    )


def session_of(data: bytes) -> Session:
    """The session of a trace written out as text."""
    return Session([kineto.read(data, "tiny.json")])
