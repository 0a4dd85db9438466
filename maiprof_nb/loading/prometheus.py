"""Answers of the Prometheus API to ``query_range`` and ``query`` (also promtool's ``-o json``)."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from maiprof_nb.errors import LoadError
from maiprof_nb.loading import _metric_times, _metrics
from maiprof_nb.loading._json_objects import objects_of_list
from maiprof_nb.loading._long_samples import LongSamples, Quantity
from maiprof_nb.loading.dcgm_exporter import devices_of, unit_of
from maiprof_nb.recording import Note, Recording
from maiprof_nb.timebase import NS_PER_MS

NAME = "prometheus-json"

_RESULT = re.compile(r'"result"\s*:\s*\[')
_MARK = re.compile(
    r'\A\s*(?:\{(?=.{0,4000}?"resultType"\s*:\s*"(?:matrix|vector|scalar|string)")'
    r'|\{(?=\s*"status"\s*:\s*"error")'
    r'|\[\s*\{\s*"metric"\s*:\s*\{[^{}]{0,20000}\}\s*,\s*"values?"\s*:)',
    re.DOTALL,
)
_FAILED = re.compile(r'\A\s*\{\s*"status"\s*:\s*"error"')
_SCRAPING = frozenset({"__name__", "job", "endpoint", "prometheus", "receive", "replica"})
_OF_GPU = _SCRAPING | {  # which GPU, who scraped it, and whose job ran on it
    "instance", "Hostname", "node", "cluster", "service", "namespace", "pod", "container",
    "exported_namespace", "exported_pod", "exported_container", "hpc_job",
    "gpu", "gpu_id", "UUID", "device", "pci_bus_id", "modelName", "GPU_I_ID", "GPU_I_PROFILE",
    "DCGM_FI_DRIVER_VERSION",
}  # fmt: skip


@dataclass
class _Series:
    """One quantity's samples, by time in ms since 1970."""

    values: dict[int, float] = field(default_factory=dict)
    missing: int = 0
    repeated: int = 0

    def take(self, pairs: Iterable[Any]) -> None:
        """Join another series of the same quantity; of two samples at one time the first stays."""
        for pair in pairs:
            ms, value = _sample(pair)
            if ms is None:
                continue
            if not math.isfinite(value):
                self.missing += 1
            elif ms in self.values:
                self.repeated += 1
            else:
                self.values[ms] = value


def sniff(data: bytes) -> bool:
    """True for an answer of the API, a failed one included."""
    return bool(_MARK.match(_metrics.head_of(data)))


def read(data: bytes, source: str) -> Recording:
    """Read matrix and vector answers; NaN is a missing value.

    Series of one GPU under several ``job`` or ``pod`` labels are one series; of two samples
    at one time the first is kept. Labels that are part of what is measured stand behind the
    counter's name, ``node_load1 {instance=a}``; what names no GPU is of the host.

    Raises
    ------
    LoadError
        If the API answered with an error, or with a scalar or text.
    """
    text = _metrics.text_of(data)
    if _FAILED.match(text):
        raise LoadError(
            f"is an error that Prometheus answered{_message(text)}",
            where=source,
            remedy="Correct the query and ask again",
        )
    start = _RESULT.search(text)
    at = start.end() - 1 if start else text.find("[")
    results, whole = objects_of_list(text, max(at, 0))
    series = [
        (labels, pairs if isinstance(pairs := item.get("values"), list) else [item.get("value")])
        for item in results
        if isinstance(labels := item.get("metric"), dict)
    ]
    if not series and not whole:
        raise LoadError(
            "is an answer of Prometheus without any series",
            where=source,
            remedy="Ask /api/v1/query_range for the metrics of the time of the job",
        )
    return _recording(source, series, whole=whole)


def _message(text: str) -> str:
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    return f" ({str(answer.get('error', ''))[:120]})" if isinstance(answer, dict) else ""


def _sample(pair: Any) -> tuple[int | None, float]:
    """Time in ms and value of ``[1718783836.956, "73.5"]``."""
    if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], int | float):
        return None, math.nan
    if not math.isfinite(pair[0]) or abs(pair[0]) > 2**33:
        return None, math.nan
    value = _metrics.number(pair[1]) if isinstance(pair[1], str) else math.nan
    return round(pair[0] * 1000), value


def _recording(
    source: str, series: Sequence[tuple[dict[str, Any], list[Any]]], *, whole: bool
) -> Recording:
    labels = [{str(key): str(value) for key, value in raw.items()} for raw, _ in series]
    joined: dict[tuple[str, str | None, str], _Series] = defaultdict(_Series)
    devices = devices_of(labels)
    for own, device, (_, pairs) in zip(labels, devices, series, strict=True):
        name = own.get("__name__", "value")
        key = name, device, _told_apart(own, _SCRAPING if device is None else _OF_GPU)
        joined[key].take(pairs)
    samples = LongSamples()
    times = sorted({ms for one in joined.values() for ms in one.values})
    event_at = {ms: event for event, ms in enumerate(times)}
    blanks = repeated = 0
    for (name, device, apart), one in joined.items():
        quantity = Quantity(f"{name}{apart}", unit_of(name), device)
        dcgm = name.startswith("DCGM_")
        for ms, value in one.values.items():
            if dcgm and _metrics.is_blank(value):
                blanks += 1
            else:
                samples.add(event_at[ms], quantity, value)
        samples.lacking[quantity.counter] += one.missing
        repeated += one.repeated
    notes = _metrics.blank_note(blanks)
    if repeated:
        text = (
            f"{repeated} samples stand twice, of one GPU under several labels (job, pod, ...); "
            "the first of each was kept."
        )
        notes.append(Note("series-duplicated", text, repeated))
    if not whole:
        notes.append(Note("cut", "The answer breaks off; the series before it were read."))
    return samples.recording(source, NAME, _stamps(times), notes=notes)


def _told_apart(labels: dict[str, str], common: frozenset[str]) -> str:
    """The labels that are part of what is measured, as an addition to the counter's name."""
    shown = ", ".join(f"{key}={labels[key]}" for key in sorted(labels.keys() - common))
    return f" {{{shown}}}" if shown else ""


def _stamps(times: Sequence[int]) -> _metric_times.Stamps:
    """Times of the answer; a value may have been scraped up to one step before."""
    step_ms = int(np.median(np.diff(times))) if len(times) > 1 else 15_000
    stamps = _metric_times.ordered(range(len(times))).ns * 0
    return _metric_times.Stamps(
        stamps + np.array(times, dtype=np.int64) * NS_PER_MS,
        "time stamps of Prometheus (UTC)",
        step_ms * NS_PER_MS,
    )
