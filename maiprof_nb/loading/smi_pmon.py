"""``nvidia-smi pmon`` logs: what each process does on each GPU."""

from __future__ import annotations

import re
from collections.abc import Sequence

from maiprof_nb.loading import _metric_times, _metrics
from maiprof_nb.loading._long_samples import LongSamples, Quantity
from maiprof_nb.loading._metrics import Dropped
from maiprof_nb.loading._processes import Ticks
from maiprof_nb.recording import Recording

NAME = "nvidia-smi-pmon"

_HEADER = re.compile(r"^[\" \t]*#[^\n]{0,80}\bgpu\b[^\n]{0,40}\bpid\b[^\n]*$", re.MULTILINE)
_STAMP = "%Y%m%d %H:%M:%S"
_NOT_MEASURED = frozenset({"pid", "type", "command"})


def sniff(data: bytes) -> bool:
    """True if the header of pmon stands near the beginning."""
    return bool(_HEADER.search(_metrics.head_of(data)))


def read(data: bytes, source: str) -> Recording:
    """Read a pmon log; each process has counters of its own, ``sm [pid 7 python]``.

    ``-`` is a missing value, and a row without a process says only that the GPU was idle.
    Without ``-o DT`` the log has an order only.
    """
    dropped, samples, ticks = Dropped(), LongSamples(), Ticks()
    names: list[str] = []
    units: dict[str, str] = {}
    stamps: list[str] = []
    last_gpu = -1
    text = _metrics.text_of(data).replace("\0", "")
    for line_number, line in enumerate(text.splitlines(), start=1):
        words = line.replace("#", " # ").split()
        if words[:1] == ["#"]:
            if "gpu" in words:
                names = words[1:]
            elif len(words) == len(names) + 1:
                units = dict(zip(names, words[1:], strict=True))
            continue
        if not words:
            ticks.begin()
            continue
        row = _row(line, names)
        if not row or not row["gpu"].isdecimal():
            dropped.add(line_number, line)
            continue
        gpu = int(row["gpu"][:9])
        if gpu < last_gpu:
            ticks.begin()
        last_gpu = gpu
        ticks.add((gpu, row["pid"]))
        process = f"[pid {row['pid']} {row.get('command', '')}".strip() + "]"
        for name in names[names.index("gpu") + 1 :]:
            if name not in _NOT_MEASURED and row["pid"] != "-":
                unit = _metrics.canonical_unit(units.get(name, ""))
                quantity = Quantity(f"{name} {process}", unit, row["gpu"])
                samples.add(len(stamps), quantity, _metrics.number(row[name]))
        stamps.append(" ".join(row[name] for name in names[: names.index("gpu")]))
    whole = _metrics.local_times(stamps, (_STAMP,))
    timed = len(stamps) and whole.notna().any()
    times = _metric_times.local(whole) if timed else _metric_times.ordered(ticks.numbers)
    return samples.recording(source, NAME, times, notes=dropped.notes())


def _row(line: str, names: Sequence[str]) -> dict[str, str] | None:
    """Cells by name; the command stands last and may hold blanks."""
    if "gpu" not in names or "pid" not in names:
        return None
    cells = line.split(maxsplit=len(names) - 1)
    if len(cells) != len(names):
        return None
    return {name: cell.strip() for name, cell in zip(names, cells, strict=True)}
