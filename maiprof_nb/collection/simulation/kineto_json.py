"""A run as the Kineto trace that torch.profiler (2.4 and later) would have exported."""

from __future__ import annotations

import bisect
import json
import math
from collections.abc import Iterator
from typing import Any

from maiprof_nb.collection.simulation.device import Device
from maiprof_nb.collection.simulation.machine import PID, Activity, Flow, HostEvent
from maiprof_nb.collection.simulation.training import EPOCH_NS, Run

_GPU_SORT_INDEX = 5_000_000
_DEVICE = 0


def trace_json(run: Run) -> bytes:
    """The trace as JSON; times are microseconds with three decimals after the base."""
    head = {
        "schemaVersion": 1,
        "deviceProperties": [run.machine.device.properties],
        "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 1, "pg_count": 0},
        "cuda_runtime_version": 12060,
        "cuda_driver_version": 12060,
        "record_shapes": 1,
        "with_stack": 1,
        "simulated": {
            "by": "maiprof_nb",
            "scenario": run.scenario.name,
            "seed": run.scenario.seed,
            "change": run.scenario.change,
        },
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": EPOCH_NS,
    }
    lines = ",\n".join(_events(run))
    return f'{json.dumps(head)[:-1]},\n"traceEvents": [\n{lines}\n]}}\n'.encode()


def microseconds(ns: int) -> str:
    """Nanoseconds as microseconds with three decimals, exact."""
    return f"{ns // 1000}.{ns % 1000:03d}"


def _line(fields: dict[str, Any], ts_ns: int, dur_ns: int | None = None) -> str:
    """One event; the exact decimals cannot go through a float."""
    times = f'"ts": {microseconds(ts_ns)}'
    if dur_ns is not None:
        times += f', "dur": {microseconds(dur_ns)}'
    return f"{json.dumps(fields)[:-1]}, {times}}}"


def _events(run: Run) -> Iterator[str]:
    start, end = run.record_from_ns, run.record_to_ns
    host = [event for event in run.machine.host_events if event.end_ns > start]
    for event in sorted(host, key=lambda event: (event.tid, event.start_ns, -event.end_ns)):
        if event.category != "cuda_runtime":
            yield _host(event, start, end)
    for flow in run.machine.flows:
        if flow.start.start_ns >= start:
            yield from _forward_to_backward(flow)
    launching = {activity.launch.args["correlation"] for activity in run.machine.activities}
    for event in host:
        if event.category == "cuda_runtime" and event.start_ns >= start:
            yield _host(event, start, end)
            if event.args["correlation"] in launching:
                flow_id = {"id": event.args["correlation"], "cat": "ac2g", "name": "ac2g"}
                yield _line({"ph": "s", **flow_id, "pid": PID, "tid": event.tid}, event.start_ns)
    for activity in run.machine.activities:
        if activity.launch.start_ns >= start:
            yield from _device(activity, run.machine.device)
    yield from _device_annotations(run)
    yield from _names(run)
    span: dict[str, Any] = {
        "ph": "X",
        "cat": "Trace",
        "name": "PyTorch Profiler (0)",
        "pid": "Spans",
    }
    span |= {"tid": "PyTorch Profiler", "args": {"Op count": 0}}
    yield _line(span, start, end - start)
    mark: dict[str, Any] = {"name": "Iteration Start: PyTorch Profiler", "ph": "i", "s": "g"}
    yield _line(mark | {"pid": "Traces", "tid": "Trace PyTorch Profiler"}, start)
    yield _line({"name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": ""}, end)


def _host(event: HostEvent, start: int, end: int) -> str:
    """A host range; a frame that was open when recording began or ended is cut there."""
    fields: dict[str, Any] = {"ph": "X", "cat": event.category, "name": event.name, "pid": PID}
    fields |= {"tid": event.tid, "args": event.args}
    begin = max(event.start_ns, start)
    return _line(fields, begin, min(event.end_ns, end) - begin)


def _forward_to_backward(flow: Flow) -> Iterator[str]:
    fields = {"id": flow.flow_id, "pid": PID, "cat": "fwdbwd", "name": "fwdbwd"}
    yield _line({"ph": "s", "tid": flow.start.tid} | fields, flow.start.start_ns)
    yield _line({"ph": "f", "bp": "e", "tid": flow.finish.tid} | fields, flow.finish.start_ns)


def _device(activity: Activity, device: Device) -> Iterator[str]:
    call = activity.launch
    where = {"pid": _DEVICE, "tid": activity.stream}
    args: dict[str, Any] = {"External id": call.args.get("External id", 0)}
    args |= {"device": _DEVICE, "context": 1, "stream": activity.stream}
    args["correlation"] = call.args["correlation"]
    fields = {"ph": "X", "cat": activity.category, "name": activity.name, **where}
    details = _kernel_args(activity, device) if activity.kernel else _transfer_args(activity)
    yield _line(fields | {"args": args | details}, activity.start_ns, activity.dur_ns)
    flow = {"id": call.args["correlation"], "cat": "ac2g", "name": "ac2g"}
    yield _line({"ph": "f", **flow, **where, "bp": "e"}, activity.start_ns)


def _device_annotations(run: Run) -> Iterator[str]:
    """The named ranges again, as the device lived them: first to last work launched inside."""
    activities = run.machine.activities
    launched = [activity.launch.start_ns for activity in activities]
    for event in run.machine.host_events:
        if event.category != "user_annotation" or event.start_ns < run.record_from_ns:
            continue
        first = bisect.bisect_left(launched, event.start_ns)
        inside = activities[first : bisect.bisect_left(launched, event.end_ns)]
        if inside:
            fields = {"ph": "X", "cat": "gpu_user_annotation", "name": event.name, "pid": _DEVICE}
            fields |= {"tid": inside[0].stream, "args": {"External id": event.args["External id"]}}
            start, end = inside[0].start_ns, max(activity.end_ns for activity in inside)
            yield _line(fields, start, end - start)


def _kernel_args(activity: Activity, device: Device) -> dict[str, Any]:
    kernel = activity.kernel
    if kernel is None:
        return {}
    blocks = device.blocks_per_sm_of(kernel)
    return {
        "registers per thread": kernel.registers,
        "shared memory": kernel.shared_bytes,
        "blocks per SM": round(blocks, 6),
        "warps per SM": round(blocks * math.prod(kernel.block) / 32, 6),
        "grid": list(kernel.grid),
        "block": list(kernel.block),
        "est. achieved occupancy %": device.occupancy_pct(kernel),
    }


def _transfer_args(activity: Activity) -> dict[str, Any]:
    rate = round(activity.size_bytes / activity.dur_ns, 6)
    return {"bytes": activity.size_bytes, "memory bandwidth (GB/s)": rate}


def _names(run: Run) -> Iterator[str]:
    start = run.record_from_ns
    streams = sorted({activity.stream for activity in run.machine.activities})
    yield from _process(PID, "python", "CPU", PID, start)
    yield from _process(_DEVICE, "python", "GPU 0", _GPU_SORT_INDEX, start)
    for tid, name in sorted(run.machine.threads.items()):
        yield from _thread(PID, tid, name, start)
    for stream in streams:
        yield from _thread(_DEVICE, stream, f"stream {stream} ", start)


def _process(pid: int, name: str, label: str, order: int, ts_ns: int) -> Iterator[str]:
    rows: tuple[tuple[str, dict[str, Any]], ...] = (
        ("process_name", {"name": name}),
        ("process_labels", {"labels": label}),
        ("process_sort_index", {"sort_index": order}),
    )
    for kind, args in rows:
        yield _line({"name": kind, "ph": "M", "pid": pid, "tid": 0, "args": args}, ts_ns)


def _thread(pid: int, tid: int, name: str, ts_ns: int) -> Iterator[str]:
    rows: tuple[tuple[str, dict[str, Any]], ...] = (
        ("thread_name", {"name": name}),
        ("thread_sort_index", {"sort_index": tid}),
    )
    for kind, args in rows:
        yield _line({"name": kind, "ph": "M", "pid": pid, "tid": tid, "args": args}, ts_ns)
