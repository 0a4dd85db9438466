"""What the view of the peak says in words, and the columns of its table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis.active_memory import MemoryLog
from maiprof_nb.analysis.device_size import device_size
from maiprof_nb.analysis.kv_cache import cache_growth
from maiprof_nb.analysis.memory_drain import floor_of
from maiprof_nb.analysis.memory_peak import FREED, OUTSIDE, MemoryPeak
from maiprof_nb.session import Session
from maiprof_nb.timebase import NS_PER_US
from maiprof_widgets import escaping
from maiprof_widgets.views import _memory_words as words

LABELS = {
    "line": "line",
    "module": "module",
    "phase": "phase",
    "step": "step",
    "category": "category",
    "stack": "stack",
    "fate": "what became of it",
}
_TITLES = {
    "line": "Line of your code",
    "module": "Module",
    "phase": "Phase it was allocated in",
    "step": "Step it was allocated in",
    "category": "What it is for (as far as told)",
    "stack": "Stack",
    "fate": "What became of it",
}
_FATES = {FREED: "freed afterwards"}
_NO_STACK = "no stack recorded"
_TOLD_APART = 60  # names; it takes every stack against every other
_UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def unit_of(most: float) -> tuple[int, str]:
    """The unit in which a column of bytes reads best."""
    return next(((scale, unit) for scale, unit in _UNITS if most >= scale), (1, "B"))


def headline(session: Session, peak: MemoryPeak, *, pointed: bool) -> str:
    """The moment in a sentence or two, as HTML."""
    log = peak.log
    what = "live" if pointed or log.device.axis == "state" else "at the peak"
    size = units.size(peak.peak_bytes)
    where = (
        [f"at {words.moment(log, peak.ts_ns / NS_PER_US)}"] if log.device.axis != "state" else []
    )
    where += [f"step {peak.step}"] if peak.step is not None else []
    where += [f"phase {peak.phase}"] if peak.phase is not None else []
    said = [
        f"{', '.join(where)}." if where else "when the snapshot was taken.",
        *_levels(session, peak),
    ]
    text = " ".join([*said, *_fates(peak), *_cache(peak)])
    return (
        f'<div class="maiprof-verdict"><div class="maiprof-sub">{escaping.text(log.device.label)}'
        f'</div><b class="maiprof-figure">{size} {what}</b>, {escaping.text(text)}</div>'
    )


def _levels(session: Session, peak: MemoryPeak) -> list[str]:
    """Against the device, the allocator's segments and the floor."""
    size = device_size(session, peak.log.device)
    total = size.size_bytes if size else None
    said = []
    if total:
        share = units.percent(peak.peak_bytes / total)
        said.append(f"That is {share} of the device's {units.size(total)}.")
    if peak.reserved_bytes and peak.reserved_bytes >= peak.peak_bytes:  # a torn log may say less
        said.append(f"The allocator held {units.size(peak.reserved_bytes)} then.")
    floor = floor_of(session, peak)
    if peak.log.device.axis != "state" and floor.size_bytes < peak.peak_bytes:
        above = units.size(peak.peak_bytes - floor.size_bytes)
        said.append(f"It stands {above} above {floor.what}, {units.size(floor.size_bytes)}.")
    return said


def _fates(peak: MemoryPeak) -> list[str]:
    if peak.log.device.axis == "state":
        return []
    freed = peak.live[peak.live["fate"] == FREED]
    gone, kept = int(freed["size_bytes"].sum()), peak.kept_bytes
    if not gone:
        return ["None of it is freed in the log."]
    order = freed.sort_values("freed_after_ns")
    half = np.searchsorted(order["size_bytes"].cumsum().to_numpy(), gone / 2)
    after = float(order["freed_after_ns"].iloc[int(half)])
    when = (
        f"{units.count(after)} events" if peak.log.device.axis == "order" else units.duration(after)
    )
    rest = f"{units.size(kept)} never is in the log" if kept else "all of it is in the end"
    return [f"{units.size(gone)} of it is freed afterwards, half of that within {when}; {rest}."]


def _cache(peak: MemoryPeak) -> list[str]:
    growth = cache_growth(peak.log)
    if growth is None:
        return []
    return [
        f"The key-value cache grows by {units.size(growth.bytes_per_token)} a token: x "
        f"{units.count(growth.tokens)} tokens = {units.size(growth.size_bytes)} at its largest."
    ]


def tells(peak: MemoryPeak, group: str) -> bool:
    """Whether grouping by it says anything at all."""
    if group in ("phase", "step"):
        return bool(peak.live[group].notna().any())
    if group == "module":
        return bool((peak.live["module"] != OUTSIDE).any())
    return group != "fate" or peak.log.device.axis != "state"


def table(peak: MemoryPeak, group: str, most_rows: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Who held the bytes: the rows, and the columns people read of them."""
    rows = peak.by(group).head(most_rows)
    total = max(peak.peak_bytes, 1)
    scale, unit = unit_of(float(rows["size_bytes"].max()) if len(rows) else 0.0)
    kept = rows["size_bytes"] - rows["freed_bytes"]
    columns: dict[str, Any] = {
        _TITLES[group]: names(peak, group, rows[group]),
        f"Size ({unit})": (rows["size_bytes"] / scale).round(3),
        "Share (%)": (100 * rows["size_bytes"] / total).round(1),
        "Blocks": rows["blocks"],
    }
    if group == "category":
        columns["How sure (0 to 1)"] = [_confidence(peak, key) for key in rows[group]]
    if peak.log.device.axis != "state":
        columns |= {
            f"Freed afterwards ({unit})": (rows["freed_bytes"] / scale).round(3),
            f"Never freed ({unit})": (kept / scale).round(3),
            "Freed after (median)": [_when(peak, after) for after in rows["freed_after_ns"]],
        }
    return rows, pd.DataFrame(columns)


def names(peak: MemoryPeak, group: str, keys: pd.Series) -> list[str]:
    """What stands in the first column."""
    if group == "stack":
        stacks = [-1 if pd.isna(one) else int(one) for one in keys]
        found = stack_names(peak.log, stacks)
    elif group == "fate":
        found = [_FATES.get(str(one), "never freed in the log") for one in keys]
    elif group in ("phase", "step"):
        found = ["not known, or older than the log" if pd.isna(one) else str(one) for one in keys]
    else:
        found = [words.short(str(one)) for one in keys]
    return [escaping.visible(one) for one in found]


def stack_names(log: MemoryLog, stacks: list[int]) -> list[str]:
    """Short names of stacks, the first of them told apart by their callers and callees."""
    label = log.stacks.set_index("stack")["label"].astype(object).to_dict()
    rest = [words.short(str(label.get(one, _NO_STACK))) for one in stacks[_TOLD_APART:]]
    return [*words.names(log, stacks[:_TOLD_APART]), *rest]


def _confidence(peak: MemoryPeak, category: Any) -> float:
    """Mean over the bytes of how surely their category was told."""
    mine = about(peak, "category", category)
    return round(float(np.average(mine["confidence"], weights=mine["size_bytes"])), 2)


def _when(peak: MemoryPeak, after_ns: Any) -> str:
    if pd.isna(after_ns):
        return ""
    if peak.log.device.axis == "order":
        return f"{units.count(float(after_ns))} events"
    return units.duration(float(after_ns))


def about(peak: MemoryPeak, group: str, key: Any) -> pd.DataFrame:
    """The live allocations of one row, largest first."""
    mine = peak.live[group].isna() if pd.isna(key) else peak.live[group] == key
    return peak.live[mine.fillna(value=False).to_numpy(bool)]
