"""Traces that nobody wrote: every phase and category, fields missing or of the wrong kind."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

PHASES = ["X", "B", "E", "i", "I", "R", "C", "M", "s", "t", "f", "b", "n", "e", "N", "P", "", "?"]
CATEGORIES = [
    "cpu_op", "Operator", "user_annotation", "gpu_user_annotation", "cuda_runtime",
    "cuda_driver", "Runtime", "mtia_runtime", "xpu_runtime", "privateuse1_runtime",
    "python_function", "kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset",
    "mtia_ccp_events", "ac2g", "fwdbwd", "async_gpu", "cuda_sync", "cpu_instant_event", "Trace",
    "overhead", "hccl", "", "new category",
]  # fmt: skip
NAMES = [
    "aten::add", "ProfilerStep#3", "ProfilerStep#", "Optimizer.step#SGD.step", "[memory]",
    "enumerate(DataLoader)#_Single.__next__", "cudaLaunchKernel", "ncclDevKernel_AllReduce",
    "process_name", "thread_name", "GPU 0 Utilization", "<script>alert(1)</script>",
    "\x1b[31mred", "a\u2028b", "", " ",
]  # fmt: skip
ODD_NUMBERS = [0, -1, 1e308, -1e300, 2**31, 2**53 + 1, 2**63, 2**70, -(2**70), 1e-320, 10**400]
_NUMBERS = st.one_of(
    st.integers(-(2**40), 2**40),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(ODD_NUMBERS),
)
_TEXTS = st.one_of(st.sampled_from(["1.5", "0x1F", "stream 7", "N/A", "-", "9" * 30]), st.text())
SCALARS = st.one_of(st.none(), st.booleans(), _NUMBERS, _TEXTS)
ARGS = [
    "External id", "external id", "correlation", "Sequence number", "Input Dims", "Input dims",
    "Python id", "Python parent id", "Python module id", "device", "stream", "bytes",
    "blocks per SM", "est. achieved occupancy %", "Collective name", "Device Type", "Device Id",
    "Addr", "Bytes", "Total Allocated", "Total Reserved", "name", "labels", "value",
]  # fmt: skip
NESTED = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "ph": st.sampled_from(PHASES),
        "cat": st.one_of(st.sampled_from(CATEGORIES), st.text(max_size=8)),
        "name": st.one_of(st.sampled_from(NAMES), st.text(max_size=8)),
        "pid": SCALARS,
        "tid": SCALARS,
        "ts": st.one_of(st.integers(0, 10**12), _NUMBERS, SCALARS),
        "dur": st.one_of(st.integers(0, 10**6), _NUMBERS, SCALARS),
        "id": SCALARS,
        "args": st.one_of(
            st.dictionaries(st.sampled_from(ARGS), st.one_of(SCALARS, NESTED), max_size=6), NESTED
        ),
    },
)
# A field of a kind no trace has: then the file is read event by event.
ODD_EVENTS = st.one_of(
    EVENTS,
    st.builds(lambda event, key, value: {**event, key: value}, EVENTS,
              st.sampled_from(["ph", "cat", "name", "pid", "ts", "dur", "id"]), NESTED),
)  # fmt: skip
LAYOUTS = ["object", "list", "events first", "trailing comma", "mark", "cut list"]


def written(events: list[Any], layout: str) -> bytes:
    """The file as different programs write it; nothing of the events is lost in any."""
    items = json.dumps(events)
    if layout == "list":
        return items.encode()
    if layout == "cut list" and events:  # the format allows the closing bracket to be missing
        return items[:-1].encode()
    if layout == "events first":
        return f'{{"traceEvents": {items}, "schemaVersion": 1}}'.encode()
    if layout == "trailing comma" and events:
        items = items[:-1] + ",\n]"
    text = f'{{"schemaVersion": 1, "deviceProperties": [], "traceEvents": {items}\n}}'
    return text.encode("utf-8-sig" if layout == "mark" else "utf-8")
