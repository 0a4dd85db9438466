"""What is open, and its headline figures."""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets
import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis._memory_log import memory_devices, memory_log
from maiprof_nb.analysis.device_activity import breakdown
from maiprof_nb.analysis.metrics import metric_summary
from maiprof_nb.analysis.sampled_quantities import sampled
from maiprof_nb.analysis.steps import figure_window, steps
from maiprof_nb.errors import MaiprofError
from maiprof_nb.session import Session
from maiprof_widgets import escaping
from maiprof_widgets.views.status import sentence_of

_UNKNOWN, _UNMARKED, _UNRECORDED = "not answerable", "none marked", "not recorded"
_BADGE = (
    '<span class="maiprof-badge" title="Made by this project\'s simulator with known truth; '
    'no GPU was involved">SIMULATED</span>'
)


class HeaderView(ipywidgets.HTML):
    """Name, kinds of recording, and one tile a headline figure."""

    def __init__(self, session: Session) -> None:
        tiles = "".join(_tile(*figure) for figure in _figures(session))
        name = escaping.shortened(_name(session), 100)
        badge = _BADGE if session.simulated else ""
        super().__init__(
            f'<div class="maiprof-header"><h2>{name} {badge}</h2>'
            f'<div class="maiprof-sub">{escaping.text(_kinds(session))}</div>'
            f'<div class="maiprof-tiles">{tiles}</div></div>'
        )
        self.layout.width = "100%"


def _name(session: Session) -> str:
    """The folder of several files, the file of one."""
    sources = [recording.source.replace("\\", "/") for recording in session.recordings]
    if len(sources) == 1:
        return "/".join(sources[0].split("/")[-2:])
    folder = sources[0].rsplit("/", 1)[0]
    if folder.rsplit("/", 1)[-1].startswith("upload "):
        return "uploaded files"
    return "/".join(folder.split("/")[-2:])


def _kinds(session: Session) -> str:
    kinds = [recording.kind for recording in session.recordings]
    counted = [
        f"{kinds.count(kind)} {words if kinds.count(kind) == 1 else words + 's'}"
        for kind, words in (
            ("trace", "trace"),
            ("snapshot", "memory snapshot"),
            ("metrics", "metrics file"),
            ("stacks", "file of sampled stacks"),
        )
        if kind in kinds
    ]
    ranks = "rank not stated"
    if session.ranks:
        several = "s" if len(session.ranks) > 1 else ""
        ranks = f"rank{several} {', '.join(map(str, session.ranks))}"
    return f"{', '.join(counted)}; {ranks}; {_devices(session)}"


def _devices(session: Session) -> str:
    names = {
        str(device.get("name"))
        for recording in session.recordings
        for device in recording.meta.get("deviceProperties") or []
        if isinstance(device, dict) and device.get("name")
    }
    return ", ".join(sorted(names)) or "no device named"


def _figures(session: Session) -> list[tuple[str, str, str]]:
    """Title, value and note of each figure; those without an answer stand behind the others."""
    makers: tuple[Callable[[Session], tuple[str, str, str]], ...] = (_busy, _length, _steps, _peak)
    figures = []
    for make in makers:
        try:
            figures.append(make(session))
        except MaiprofError as problem:
            figures.append((_TITLES[make.__name__], _UNKNOWN, sentence_of(problem)))
    return sorted(figures, key=lambda figure: figure[1] in (_UNKNOWN, _UNMARKED, _UNRECORDED))


_TITLES = {
    "_busy": "GPU busy",
    "_peak": "Peak memory",
    "_length": "Recorded",
    "_steps": "Median step",
}


def _busy(session: Session) -> tuple[str, str, str]:
    use = _sampled(session, "gpu utilisation")
    if session.table("kernels").empty and len(use):
        value = units.percent(float((use["mean"] * use["scale"]).max()) / 100)
        note = f"mean of {units.count(use['samples'].max())} samples: a kernel was resident"
        return "GPU utilisation (sampled)", value, note
    found = breakdown(session)
    lowest, highest = found["busy_share"].min(), found["busy_share"].max()
    value = units.percent(lowest)
    if len(found) > 1:
        value = f"{units.percent(lowest)} to {units.percent(highest)}"
    window = figure_window(session)
    span = units.duration(window.window.dur_ns)
    note = f"share of {span} ({window.reason}) with any work on the device"
    return _TITLES["_busy"], value, note


def _length(session: Session) -> tuple[str, str, str]:
    events = sum(sum(recording.events.values()) for recording in session.recordings)
    many = f"{units.count(events)} event{'' if events == 1 else 's'}"
    length = units.duration(session.span.dur_ns) if session.span.dur_ns else "one moment"
    return _TITLES["_length"], length, many


def _steps(session: Session) -> tuple[str, str, str]:
    found = steps(session)
    if found.empty:
        return _TITLES["_steps"], _UNMARKED, "call prof.step() after each step to mark them"
    low, middle, high = (found["dur_ns"].quantile(q) for q in (0.0, 0.5, 1.0))
    count = found["step"].nunique()
    counted = f"{count} step{'s' if count > 1 else ''}"
    spread = f"{counted}, {units.duration(low)} to {units.duration(high)}"
    return _TITLES["_steps"], units.duration(middle), spread


def _peak(session: Session) -> tuple[str, str, str]:
    devices = memory_devices(session)
    used = _sampled(session, "memory used")
    if not devices and len(used):
        value = units.size(float((used["maximum"] * used["scale"]).max()) * 2**30)
        return "GPU memory used (sampled)", value, "most at any sample, all processes together"
    if not devices:
        return _TITLES["_peak"], _UNRECORDED, "record a memory snapshot, or profile_memory=True"
    peaks = []
    for device in devices:
        held = memory_log(session, device).allocated_bytes
        peaks.append((int(held.max(initial=0)), device.label))
    most, label = max(peaks)
    return _TITLES["_peak"], units.size(most), f"most allocated at once on {label}"


def _sampled(session: Session, quantity: str) -> pd.DataFrame:
    """Figures of a sampled quantity, with their scale to its unit."""
    found = sampled(metric_summary(session), quantity)
    return found[found["scale"].notna()]


def _tile(title: str, value: str, note: str) -> str:
    return (
        f'<div class="maiprof-tile"><div class="maiprof-tile-title">{escaping.text(title)}</div>'
        f'<div class="maiprof-tile-value">{escaping.text(value)}</div>'
        f'<div class="maiprof-tile-note">{escaping.text(note)}</div></div>'
    )
