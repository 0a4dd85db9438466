"""``nvidia-smi dmon`` logs, with or without date and time columns."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from maiprof_nb.loading import _metrics
from maiprof_nb.loading._metrics import Dropped, Samples
from maiprof_nb.recording import Recording
from maiprof_nb.timebase import NS_PER_S, Clock

NAME = "nvidia-smi-dmon"

_HEADER = re.compile(
    r"^[ \t]*#[ \t]*(?:Date[ ,\t]+)?(?:Time[ ,\t]+)?gpu\b(.*)$", re.MULTILINE | re.IGNORECASE
)
_STAMP = "%Y%m%d %H:%M:%S"
_DAY_NS = 24 * 3600 * NS_PER_S


def sniff(data: bytes) -> bool:
    """True if the header of dmon stands near the beginning (pmon's has a pid)."""
    found = _HEADER.search(_metrics.head_of(data))
    return found is not None and "pid" not in found[1].split()


def read(data: bytes, source: str) -> Recording:
    """Read a dmon log; ``-`` is a missing value.

    Without ``-o DT`` the log has an order only; with ``-o T`` times of day without a date.
    """
    dropped = Dropped()
    names: list[str] = []
    sections: list[Samples] = []
    stamps: list[str] = []
    text = _metrics.text_of(data).replace("\0", "")
    for line_number, line in enumerate(text.splitlines(), start=1):
        words = line.replace(",", " ").replace("#", " # ").split()
        if words[:1] == ["#"]:
            heading = words[1:]
            if "gpu" in heading and heading != names:
                names = heading
                sections.append(Samples(_counters(names, [])))
            elif "gpu" not in heading and sections:
                sections[-1].counters = _counters(names, heading)
        elif words and (len(words) != len(names) or not words[names.index("gpu")].isdecimal()):
            dropped.add(line_number, line)
        elif words:
            at = names.index("gpu")
            sections[-1].events.append(len(stamps))
            sections[-1].devices.append(words[at])
            sections[-1].cells.append(words[at + 1 :])
            stamps.append(" ".join(words[:at]))
    devices = [device for part in sections for device in part.devices]
    return _metrics.recording(
        source, NAME, sections, _times(stamps, devices), notes=dropped.notes()
    )


def _counters(names: Sequence[str], units: Sequence[str]) -> list[tuple[str, str | None]]:
    """Names and units after the column ``gpu``; units only where their line has them all."""
    at = names.index("gpu") + 1
    if len(units) != len(names):  # the line of units is cut or not yet read
        return [(name, None) for name in names[at:]]
    found = zip(names[at:], units[at:], strict=True)
    return [(name, _metrics.canonical_unit(unit)) for name, unit in found]


def _times(
    texts: Sequence[str], devices: Sequence[str | None]
) -> tuple[npt.NDArray[np.int64], Clock]:
    whole = _metrics.local_times(texts, (_STAMP,))
    if len(texts) and whole.notna().all():
        zero_ns = int(whole.min())
        return whole.to_numpy("int64") - zero_ns, _metrics.local_clock(zero_ns)
    of_day = _metrics.local_times([f"19700101 {text}" for text in texts], (_STAMP,))
    if len(texts) and of_day.notna().all():
        stamps = of_day.to_numpy("int64")
        midnights = np.cumsum(np.diff(stamps, prepend=stamps[0]) < -_DAY_NS // 2)
        stamps = stamps + midnights * _DAY_NS
        return stamps - stamps.min(), Clock(None, "time of day without a date")
    return _metrics.ticks(devices), _metrics.NO_TIME
