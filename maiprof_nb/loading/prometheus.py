"""Answers of the Prometheus API to ``query_range`` and ``query`` (also promtool's ``-o json``)."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

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
_LAST_S = 2**33  # year 2242: later is no time of a job
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
    """One quantity's samples, perhaps from several series of the answer."""

    ms: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def take(self, pairs: Iterable[Any]) -> None:
        """Take pairs such as ``[1718783836.956, "73.5"]``; what is no such pair is no sample."""
        for pair in pairs:
            paired = isinstance(pair, list) and len(pair) == 2
            if paired and isinstance(pair[0], int | float) and abs(pair[0]) < _LAST_S:
                self.ms.append(round(pair[0] * 1000))
                self.texts.append(pair[1] if isinstance(pair[1], str) else "")

    def samples(self) -> tuple[npt.NDArray[np.int64], _metrics.Floats, int]:
        """Times in ms, values, and how many others stand at a time that has a value already."""
        values = _metrics.numbers(self.texts) if self.texts else np.empty(0)
        ms = np.array(self.ms, dtype=np.int64)
        order = np.lexsort((np.isnan(values), ms))  # stable: the first value of a time leads
        ms, values = ms[order], values[order]
        again = np.concatenate(([False], ms[1:] == ms[:-1])) if len(ms) else np.empty(0, np.bool_)
        return ms[~again], values[~again], int((again & ~np.isnan(values)).sum())


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
    parts = {key: one.samples() for key, one in joined.items()}
    times = np.unique(np.concatenate([np.empty(0, np.int64), *(ms for ms, _, _ in parts.values())]))
    blanks = repeated = 0
    for (name, device, apart), (ms, values, again) in parts.items():
        blank = _metrics.is_blank(values) & name.startswith("DCGM_")
        quantity = Quantity(f"{name}{apart}", unit_of(name), device)
        events = np.searchsorted(times, ms)
        samples.add_column(events, quantity, np.where(blank, np.nan, values))
        blanks += int(blank.sum())
        repeated += again
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


def _stamps(times: npt.NDArray[np.int64]) -> _metric_times.Stamps:
    """Times of the answer; a value may have been scraped up to one step before."""
    step_ms = int(np.median(np.diff(times))) if len(times) > 1 else 15_000
    ns = pd.Series(times * NS_PER_MS, dtype="Int64")
    return _metric_times.Stamps(ns, "time stamps of Prometheus (UTC)", step_ms * NS_PER_MS)
