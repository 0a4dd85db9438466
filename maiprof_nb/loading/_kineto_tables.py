"""Events of a Kineto trace -> typed tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.loading._chrome_json import Part
from maiprof_nb.loading._event import NO_ARGS, Args
from maiprof_nb.loading._event_columns import (
    extents,
    floats,
    integers,
    labels,
    strings,
    texts,
    written,
)
from maiprof_nb.loading._kernel_kind import kinds
from maiprof_nb.loading._kineto_times import Bools, Ints, nanoseconds
from maiprof_nb.loading._tally import Tally
from maiprof_nb.tables import SCHEMAS

Places = npt.NDArray[np.intp]
_ABSURD = 1e300  # no counter reaches this, and some integers are too large for a float

_BY_CATEGORY = {
    "cpu_op": "operators",
    "Operator": "operators",
    "user_annotation": "annotations",
    "gpu_user_annotation": "device_annotations",
    "cuda_runtime": "launches",
    "cuda_driver": "launches",
    "Runtime": "launches",
    "mtia_runtime": "launches",
    "xpu_runtime": "launches",
    "privateuse1_runtime": "launches",
    "python_function": "python_calls",
    "kernel": "kernels",
    "Kernel": "kernels",
    "gpu_memcpy": "kernels",
    "Memcpy": "kernels",
    "gpu_memset": "kernels",
    "Memset": "kernels",
    "mtia_ccp_events": "kernels",
}
_BY_PHASE = {"s": "flows", "t": "flows", "f": "flows", "C": "counters", "M": "track_labels"}
_ENDS = {"s": "start", "t": "step", "f": "finish"}
_STEP = re.compile(r"ProfilerStep#(\d+)$")
# Before torch 1.12 named ranges were written as operators; these names are ranges.
_RANGES = re.compile(r"ProfilerStep#\d+$|Optimizer\.(?:step|zero_grad)#|enumerate\(DataLoader\)#")


class Rows:
    """Events of one part of a trace with their times, from which each table takes its rows.

    Parameters
    ----------
    part : Part
        The events.
    tally : Tally
        Where oddities are counted.

    Attributes
    ----------
    ts_ns, dur_ns : ndarray of int64
        Start as the file's clock has it, and duration, never negative.
    has_ts, has_dur : ndarray of bool
        Which of them the file states.
    """

    def __init__(self, part: Part, tally: Tally) -> None:
        self.part, self.first, self.events, self.tally = part, part.first, part.events, tally
        events = part.events
        self.ts_ns, self.has_ts = nanoseconds([event.ts for event in events], part.exact_times)
        dur_ns, self.has_dur = nanoseconds([event.dur for event in events])
        self.category = texts([event.cat for event in events])
        self.phase = texts([event.ph for event in events])
        self.name = texts([event.name for event in events])
        self.pid = labels([event.pid for event in events])
        self.tid = labels([event.tid for event in events])
        self.complete = _is(self.phase, {"X"})
        self._count_oddities(dur_ns)
        self.dur_ns = np.where(self.has_dur, np.maximum(dur_ns, 0), 0)

    def _count_oddities(self, dur_ns: Ints) -> None:
        for code, odd, text in (
            (
                "negative-duration",
                self.has_dur & (dur_ns < 0),
                "Events have a negative duration (unfinished when the trace was written) and "
                "count as 0",
            ),
            (
                "duration-missing",
                ~self.has_dur,
                "Events have no readable duration and count as 0",
            ),
            (
                "time-missing",
                ~self.has_ts,
                "Events have no readable start time and are on no timeline",
            ),
        ):
            at = np.flatnonzero(self.complete & odd)
            if len(at):
                self.tally.add(code, f"{text}, first event {self.first + at[0]}.", len(at))

    def args(self, at: Places) -> list[Args]:
        """The args of some events; those that are no object are counted and count as empty."""
        found = [self.events[i].args for i in at]
        if set(map(type, found)) <= {Args}:
            return found
        fit = [args if isinstance(args, Args) else NO_ARGS for args in found]
        odd = sum(args is not None and not isinstance(args, Args) for args in found)
        text = "Details of events are not what they should be and are left out."
        self.tally.add("args-unreadable", text, odd)
        return fit

    def samples(self, place: int) -> list[tuple[str, float]]:
        """The values of a counter event."""
        values = self.part.args(place).items()
        return [
            (key, float(value))
            for key, value in values
            if isinstance(value, int | float) and abs(value) < _ABSURD
        ]

    def first_start(self) -> tuple[int, int] | None:
        """(0, start) of the first complete event, else (1, start) of any, else None."""
        for order, known in enumerate((self.complete & self.has_ts, self.has_ts)):
            if known.any():
                return order, int(self.ts_ns[known].min())
        return None

    def counts(self) -> Counter[str]:
        """Events by phase and category exactly as the file has them."""
        width = len(self.category.categories) + 1  # the last stands for "no category"
        phases = [*self.phase.categories, ""]
        categories = [*self.category.categories, ""]
        pairs = self.phase.codes.astype(np.int64) * width + self.category.codes % width
        found, numbers = np.unique(pairs, return_counts=True)
        counted: Counter[str] = Counter()  # no category and an empty one are written alike
        for pair, number in zip(found, numbers, strict=True):
            counted[f"{phases[pair // width]}/{categories[pair % width]}"] += int(number)
        return counted

    def places(self) -> dict[str, Places]:
        """Positions of the events of each table, by table name."""
        table = np.full(len(self.events), "other_events", dtype=object)
        complete = self.complete & self.has_ts
        for code, category in enumerate(self.category.categories):
            if category in _BY_CATEGORY:
                table[complete & (self.category.codes == code)] = _BY_CATEGORY[category]
        ranges = np.array([bool(_RANGES.match(str(n))) for n in self.name.categories], dtype=bool)
        named = self.name.codes >= 0
        is_range = np.zeros(len(table), dtype=bool)
        is_range[named] = ranges[self.name.codes[named]]
        table[is_range & (table == "operators")] = "annotations"
        for code, phase in enumerate(self.phase.categories):
            if phase in _BY_PHASE:
                timed = self.has_ts if phase != "M" else np.ones(len(table), dtype=bool)
                table[timed & (self.phase.codes == code)] = _BY_PHASE[phase]
        valueless = [i for i in np.flatnonzero(table == "counters") if not self.samples(int(i))]
        table[valueless] = "other_events"
        instant = _is(self.phase, {"i", "I", "R"}) & _is(self.name, {"[memory]"}) & self.has_ts
        table[instant] = "memory_events"
        return {name: np.flatnonzero(table == name) for name in set(table)}


def tables(rows: Rows) -> dict[str, pd.DataFrame]:
    """Every table of a trace.

    Each event is a row of exactly one of them; only a counter event with several values is
    several rows, and a step is a row of `annotations` too.
    """
    places = rows.places()
    nothing = np.empty(0, dtype=np.intp)
    return {name: build(rows, places.get(name, nothing)) for name, build in _BUILDERS.items()}


def _is(values: pd.Categorical, wanted: set[str]) -> Bools:
    codes = [code for code, text in enumerate(values.categories) if text in wanted]
    return np.isin(values.codes, codes)


def _take(values: pd.Categorical, at: Places) -> pd.Categorical:
    return values[at].remove_unused_categories()


def _common(rows: Rows, at: Places, *columns: str) -> dict[str, Any]:
    makers: dict[str, Callable[[], Any]] = {
        "event": lambda: at.astype(np.int64) + rows.first,
        "name": lambda: _take(rows.name, at),
        "ts_ns": lambda: rows.ts_ns[at],
        "dur_ns": lambda: rows.dur_ns[at],
        "pid": lambda: _take(rows.pid, at),
        "tid": lambda: _take(rows.tid, at),
    }
    return {column: makers[column]() for column in columns}


_HOST = ("event", "name", "ts_ns", "dur_ns", "pid", "tid")


def _external_ids(args: list[Args]) -> Any:
    return integers(
        [a.external_id if a.external_id is not None else a.external_id_2021 for a in args]
    )


def _operators(rows: Rows, at: Places) -> pd.DataFrame:
    args = rows.args(at)
    return SCHEMAS["operators"].frame(
        _common(rows, at, *_HOST)
        | {
            "external_id": _external_ids(args),
            "sequence": integers([a.sequence for a in args]),
            "forward_thread": integers([a.forward_thread for a in args]),
            "input_dims": written([a.input_dims or a.input_dims_2021 for a in args]),
            "input_types": written([a.input_types for a in args]),
            "concrete_inputs": written([a.concrete_inputs for a in args]),
            "call_stack": strings([a.call_stack for a in args]),
        }
    )


def _annotations(rows: Rows, at: Places) -> pd.DataFrame:
    args = rows.args(at)
    return SCHEMAS["annotations"].frame(
        _common(rows, at, *_HOST) | {"external_id": _external_ids(args)}
    )


def _launches(rows: Rows, at: Places) -> pd.DataFrame:
    args = rows.args(at)
    return SCHEMAS["launches"].frame(
        _common(rows, at, *_HOST)
        | {
            "external_id": _external_ids(args),
            "correlation": integers([a.correlation for a in args]),
        }
    )


def _python_calls(rows: Rows, at: Places) -> pd.DataFrame:
    args = rows.args(at)
    return SCHEMAS["python_calls"].frame(
        _common(rows, at, *_HOST)
        | {
            "python_id": integers([a.python_id for a in args]),
            "parent_id": integers([a.python_parent_id for a in args]),
            "module_id": integers([a.python_module_id for a in args]),
        }
    )


def _device_args(rows: Rows, at: Places) -> tuple[list[Args], Any, Any]:
    """Args, device and stream; the row's process and thread where the args do not say."""
    events = [rows.events[i] for i in at]
    args = rows.args(at)
    devices = [
        a.device if a.device is not None else e.pid for a, e in zip(args, events, strict=True)
    ]
    streams = [
        a.stream if a.stream is not None else e.tid for a, e in zip(args, events, strict=True)
    ]
    return args, integers(devices), integers([_stream(s) for s in streams])


def _stream(value: Any) -> Any:
    return value.removeprefix("stream ") if isinstance(value, str) else value


def _kernels(rows: Rows, at: Places) -> pd.DataFrame:
    args, device, stream = _device_args(rows, at)
    common = _common(rows, at, "event", "name", "ts_ns", "dur_ns")
    return SCHEMAS["kernels"].frame(
        common
        | {
            "kind": kinds(
                rows.category[at],
                common["name"],
                collective=[a.collective is not None for a in args],
            ),
            "device": device,
            "stream": stream,
            "external_id": _external_ids(args),
            "correlation": integers([a.correlation for a in args]),
            "size_bytes": integers([a.bytes for a in args]),
            "blocks_per_sm": floats([a.blocks_per_sm for a in args]),
            "est_occupancy_pct": floats([a.est_occupancy_pct for a in args]),
            "grid": extents([a.grid for a in args]),
            "block": extents([a.block for a in args]),
            "registers": integers([a.registers for a in args]),
            "shared_memory_bytes": integers([a.shared_memory for a in args]),
        }
    )


def _device_annotations(rows: Rows, at: Places) -> pd.DataFrame:
    args, device, stream = _device_args(rows, at)
    return SCHEMAS["device_annotations"].frame(
        _common(rows, at, "event", "name", "ts_ns", "dur_ns")
        | {"device": device, "stream": stream, "external_id": _external_ids(args)}
    )


def _flows(rows: Rows, at: Places) -> pd.DataFrame:
    return SCHEMAS["flows"].frame(
        _common(rows, at, "event", "ts_ns", "pid", "tid")
        | {
            "category": _take(rows.category, at),
            "flow_id": integers([rows.events[i].id for i in at]),
            "end": texts([_ENDS[rows.events[i].ph] for i in at]),
        }
    )


def _counters(rows: Rows, at: Places) -> pd.DataFrame:
    samples = [(i, key, value) for i in at for key, value in rows.samples(i)]
    places = np.array([place for place, _, _ in samples], dtype=np.intp)
    return SCHEMAS["counters"].frame(
        {
            "event": places.astype(np.int64) + rows.first,
            "ts_ns": rows.ts_ns[places],
            "device": _take(rows.pid, places),
            "counter": texts([key for _, key, _ in samples]),
            "unit": texts([None] * len(samples)),
            "value": np.array([value for _, _, value in samples], dtype=np.float64),
        }
    )


def _memory_events(rows: Rows, at: Places) -> pd.DataFrame:
    args = rows.args(at)
    sizes = integers([a.memory_bytes for a in args])
    return SCHEMAS["memory_events"].frame(
        _common(rows, at, "event", "ts_ns", "pid", "tid")
        | {
            "device_type": integers([a.memory_device_type for a in args]),
            "device": integers([a.memory_device for a in args]),
            "address": integers([a.memory_address for a in args]),
            "size_bytes": pd.Series(sizes).fillna(0).astype("int64"),
            "allocated_bytes": integers([a.memory_allocated for a in args]),
            "reserved_bytes": integers([a.memory_reserved for a in args]),
        }
    )


def _track_labels(rows: Rows, at: Places) -> pd.DataFrame:
    said = [_said(args) for args in rows.args(at)]
    return SCHEMAS["track_labels"].frame(
        _common(rows, at, "event", "pid", "tid")
        | {"label": _take(rows.name, at), "text": labels([_scalar(value) for value in said])}
    )


def _other_events(rows: Rows, at: Places) -> pd.DataFrame:
    return SCHEMAS["other_events"].frame(
        _common(rows, at, "event", "name", "pid", "tid")
        | {
            "phase": _take(rows.phase, at),
            "category": _take(rows.category, at),
            "ts_ns": pd.arrays.IntegerArray(rows.ts_ns[at], ~rows.has_ts[at]),
            "dur_ns": pd.arrays.IntegerArray(rows.dur_ns[at], ~rows.has_dur[at]),
        }
    )


def steps_of(annotations: pd.DataFrame) -> pd.DataFrame:
    """The table `steps`: the ranges whose name marks a step."""
    is_step = _is(
        annotations["name"].array, {n for n in annotations["name"].cat.categories if _STEP.match(n)}
    )
    found = annotations[is_step]
    return SCHEMAS["steps"].frame(
        {
            "event": found["event"],
            "step": found["name"].astype("str").str.extract(_STEP)[0].astype("int64"),
            "ts_ns": found["ts_ns"],
            "dur_ns": found["dur_ns"],
            "pid": found["pid"].cat.remove_unused_categories(),
            "tid": found["tid"].cat.remove_unused_categories(),
        }
    )


def _said(args: Args) -> Any:
    """What a metadata event says, whichever of its kinds it is."""
    said = (args.said_name, args.said_labels, args.said_index)
    return next((one for one in said if one is not None), None)


def _scalar(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | float) else str(value)


_BUILDERS: dict[str, Callable[[Rows, Places], pd.DataFrame]] = {
    "operators": _operators,
    "launches": _launches,
    "kernels": _kernels,
    "annotations": _annotations,
    "device_annotations": _device_annotations,
    "python_calls": _python_calls,
    "flows": _flows,
    "counters": _counters,
    "memory_events": _memory_events,
    "track_labels": _track_labels,
    "other_events": _other_events,
}
