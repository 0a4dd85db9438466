"""One event of a Chrome trace as it is decoded, with the args that tables have columns for."""

from __future__ import annotations

from typing import Any

import msgspec

NOTHING = msgspec.Raw(b"")


class Args(msgspec.Struct, gc=False, frozen=True):
    """The details that some table has a column for; all others stay in the file."""

    external_id: Any = msgspec.field(default=None, name="External id")
    external_id_2021: Any = msgspec.field(default=None, name="external id")
    correlation: Any = None
    device: Any = None
    stream: Any = None
    bytes: Any = None
    blocks_per_sm: Any = msgspec.field(default=None, name="blocks per SM")
    est_occupancy_pct: Any = msgspec.field(default=None, name="est. achieved occupancy %")
    grid: msgspec.Raw = NOTHING
    block: msgspec.Raw = NOTHING
    registers: Any = msgspec.field(default=None, name="registers per thread")
    shared_memory: Any = msgspec.field(default=None, name="shared memory")
    collective: Any = msgspec.field(default=None, name="Collective name")
    sequence: Any = msgspec.field(default=None, name="Sequence number")
    forward_thread: Any = msgspec.field(default=None, name="Fwd thread id")
    input_dims: msgspec.Raw = msgspec.field(default=NOTHING, name="Input Dims")
    input_dims_2021: msgspec.Raw = msgspec.field(default=NOTHING, name="Input dims")
    input_types: msgspec.Raw = msgspec.field(default=NOTHING, name="Input type")
    concrete_inputs: msgspec.Raw = msgspec.field(default=NOTHING, name="Concrete Inputs")
    call_stack: msgspec.Raw = msgspec.field(default=NOTHING, name="Call stack")
    python_id: Any = msgspec.field(default=None, name="Python id")
    python_parent_id: Any = msgspec.field(default=None, name="Python parent id")
    python_module_id: Any = msgspec.field(default=None, name="Python module id")
    memory_device_type: Any = msgspec.field(default=None, name="Device Type")
    memory_device: Any = msgspec.field(default=None, name="Device Id")
    memory_address: Any = msgspec.field(default=None, name="Addr")
    memory_bytes: Any = msgspec.field(default=None, name="Bytes")
    memory_allocated: Any = msgspec.field(default=None, name="Total Allocated")
    memory_reserved: Any = msgspec.field(default=None, name="Total Reserved")
    said_name: Any = msgspec.field(default=None, name="name")
    said_labels: Any = msgspec.field(default=None, name="labels")
    said_index: Any = msgspec.field(default=None, name="sort_index")


NO_ARGS = Args()


class Event(msgspec.Struct, gc=False):
    """One event as written. Args that are no object are kept as whatever they are."""

    ph: str = ""
    cat: str | None = None
    name: str | None = None
    pid: int | float | str | None = None
    tid: int | float | str | None = None
    ts: int | float | str | None = None
    dur: int | float | str | None = None
    id: int | float | str | None = None
    args: Args | list[Any] | int | float | str | bool | None = NO_ARGS


class ExactTime(msgspec.Struct, gc=False):
    """The start of an event, in the digits of the file."""

    ts: msgspec.Raw = msgspec.Raw(b"null")


class AllArgs(msgspec.Struct, gc=False):
    """Everything in the args of an event, undecoded."""

    args: msgspec.Raw = msgspec.Raw(b"{}")
