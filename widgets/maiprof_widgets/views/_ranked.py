"""What can be ranked: where its rows come from, how they are shown, and in which words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis.kernel_ranking import kernel_ranking
from maiprof_nb.analysis.operator_ranking import (
    calls_with_python,
    operator_calls,
    rank_calls,
    recorded_groupings,
    with_origin,
)
from maiprof_nb.analysis.python_ranking import python_ranking
from maiprof_nb.session import Session
from maiprof_nb.timebase import TimeWindow
from maiprof_widgets import escaping

_CALL_TREE = (
    "Total = with callees, self = without: if total is high and self low, look at what it "
    "calls; if self is high, you have arrived. Many cheap calls are another problem than "
    "one dear call. Times are as profiled: compare only with other profiled runs."
)
_BY = {
    "name": "by name",
    "shapes": "by name and shapes",
    "stack": "by name and line of your code",
    "module": "by name and module",
    "launch": "by name, grid and block",
}
_TOGETHER = {"user_line": "Called from", "module": "Module"}


@dataclass(frozen=True)
class Ranked:
    """One kind of thing that can be ranked.

    Attributes
    ----------
    label, title, advice : str
        On the button; above the table; what to make of it.
    table : str
        What `Selection.table` says of a row.
    groupings, rank, calls : callable
        What it can be grouped by; the ranking itself; the calls whose tree can be followed,
        or None.
    columns, words : callable
        Ranking -> what people read; one row -> a sentence, as HTML.
    """

    label: str
    title: str
    advice: str
    table: str
    groupings: Callable[[Session], list[str]]
    rank: Callable[[Session, TimeWindow | None, str], pd.DataFrame]
    columns: Callable[[pd.DataFrame], pd.DataFrame]
    words: Callable[[pd.Series], str]
    calls: Callable[[Session], pd.DataFrame] | None = None

    def options(self, session: Session) -> list[tuple[str, str]]:
        """The groupings as labels and values of a toggle."""
        return [(_BY[one], one) for one in self.groupings(session)]


def recorded(session: Session) -> dict[str, Ranked]:
    """The kinds of which this session holds any, in the order of their buttons."""
    calls = operator_calls(session)
    found = {
        "operators": not calls.empty,
        "kernels": not session.table("kernels").empty,
        "launches": bool((calls["kind"] == "launch").any()),
        "python": not session.table("python_calls").empty,
    }
    return {key: RANKED[key] for key, there in found.items() if there}


def _overlapping(calls: pd.DataFrame, window: TimeWindow | None) -> pd.DataFrame:
    if window is None:
        return calls
    end = calls["ts_ns"] + calls["dur_ns"]
    return calls[(calls["ts_ns"] < window.end_ns) & (end > window.start_ns)]


def _operators(session: Session, window: TimeWindow | None, by: str) -> pd.DataFrame:
    calls = _overlapping(operator_calls(session), window)
    return rank_calls(with_origin(session, calls, by=by), by=by)


def _launches(session: Session, window: TimeWindow | None, by: str) -> pd.DataFrame:
    calls = operator_calls(session)
    calls = _overlapping(calls[calls["kind"] == "launch"], window)
    return rank_calls(with_origin(session, calls, by=by), by=by)


def _without_shapes(session: Session) -> list[str]:
    return [one for one in recorded_groupings(session) if one != "shapes"]


def _kernels(session: Session, window: TimeWindow | None, by: str) -> pd.DataFrame:
    shown = session if window is None else session.select(window=window)
    return kernel_ranking(shown, by=by)


def _python(session: Session, window: TimeWindow | None, _by: str) -> pd.DataFrame:
    return python_ranking(session, window=window)


def _text(column: pd.Series) -> list[str]:
    return [escaping.visible(one) for one in column.astype("object").fillna("")]


def _call_columns(top: pd.DataFrame) -> pd.DataFrame:
    """Calls with their times, in units that compare down a column."""
    columns = {"Name": _text(top["name"]), "Kind": top["kind"].astype("str")}
    if "input_dims" in top:
        columns["Input shapes"] = top["input_dims"].astype("str").fillna("")
    for column, title in _TOGETHER.items():
        if column in top:
            of_forward = (top["line_of"] == "forward").to_numpy()
            columns[title] = [
                f"{text} (of its forward)" if backward else text
                for text, backward in zip(_text(top[column]), of_forward, strict=True)
            ]
    columns |= {
        "Calls": top["calls"],
        "Self (ms)": (top["self_ns"] / 1e6).round(3),
        "Self (%)": (top["self_share"] * 100).round(1),
        "Total (ms)": (top["total_ns"] / 1e6).round(3),
        "Mean (µs)": (top["mean_ns"] / 1e3).round(2),
    }
    if top["device_total_ns"].any():
        columns |= {
            "Device self (ms)": (top["device_self_ns"] / 1e6).round(3),
            "Device self (%)": (top["device_share"] * 100).round(1),
            "Device total (ms)": (top["device_total_ns"] / 1e6).round(3),
        }
    return pd.DataFrame(columns)


def _kernel_columns(top: pd.DataFrame) -> pd.DataFrame:
    """Device work with how it was launched; columns of which nothing was recorded are left out."""
    columns = {"Name": _text(top["name"]), "Kind": top["kind"].astype("str")}
    texts = {"grid": "Grid", "block": "Block", "tensor_core": "Tensor Cores"}
    columns |= {title: _text(top[one]) for one, title in texts.items() if top[one].notna().any()}
    columns |= {
        "Calls": top["calls"],
        "Total (ms)": (top["total_ns"] / 1e6).round(3),
        "Share (%)": (top["share"] * 100).round(1),
        "Mean (µs)": (top["mean_ns"] / 1e3).round(2),
    }
    numbers = {
        "registers": ("Registers", 1, 0),
        "shared_memory_bytes": ("Shared memory (KiB)", 1024, 1),
        "blocks_per_sm": ("Blocks per SM", 1, 2),
        "est_occupancy_pct": ("Est. occupancy (%)", 1, 0),
        "size_bytes": ("Moved (MiB)", 2**20, 1),
    }
    for one, (title, unit, digits) in numbers.items():
        if top[one].notna().any():
            columns[title] = _numbers_or_blank(top[one].astype("Float64") / unit, digits)
    return pd.DataFrame(columns)


def _numbers_or_blank(values: pd.Series, digits: int) -> list[str]:
    """Numbers as text, empty where missing; the table still sorts them as numbers."""
    return ["" if pd.isna(one) else f"{one:.{digits}f}" for one in values]


def _call_words(one: pd.Series) -> str:
    device = (
        f"; device work launched: {units.duration(one.device_total_ns)}, "
        f"itself {units.duration(one.device_self_ns)}"
        if one.device_total_ns
        else ""
    )
    return (
        f"{units.count(one.calls)} calls, {units.duration(one.mean_ns)} each "
        f"({units.duration(one.min_ns)} to {units.duration(one.max_ns)}); "
        f"total {units.duration(one.total_ns)}, self {units.duration(one.self_ns)}{device}. "
        "Its calls are marked in the timeline."
    )


def _kernel_words(one: pd.Series) -> str:
    launches = (
        f" Launched with {units.count(one.launches)} different grids and blocks."
        if one.launches > 1
        else ""
    )
    return (
        f"{units.count(one.calls)} times, {units.duration(one.mean_ns)} each "
        f"({units.duration(one.min_ns)} to {units.duration(one.max_ns)}); "
        f"total {units.duration(one.total_ns)}, {100 * one.share:.1f} % of all device work."
        f"{launches} Where it ran is marked in the timeline."
    )


RANKED = {
    "operators": Ranked(
        "Operators and ranges", "Operators and named ranges", _CALL_TREE, "operators",
        recorded_groupings, _operators, _call_columns, _call_words, operator_calls,
    ),
    "kernels": Ranked(
        "Kernels", "Device work",
        "Times are summed over the work, so that work running side by side counts twice. "
        "Grid and block are those of the most calls; occupancy is the profiler's estimate, no "
        "measurement; Tensor Cores are told by the kernel's name.",
        "kernels", lambda _session: ["name", "launch"], _kernels, _kernel_columns, _kernel_words,
    ),
    "launches": Ranked(
        "Launch calls", "Launch and other runtime calls",
        "Self = the time the host spent in the call itself, in which it also waits: for a copy, "
        "a synchronisation or a full queue. Times are as profiled.",
        "launches", _without_shapes, _launches, _call_columns, _call_words, operator_calls,
    ),
    "python": Ranked(
        "Python functions", "Python functions",
        "Self = without the functions, operators and runtime calls it called. Recording every "
        "call slows Python down: the shares say where to look, not what it costs unprofiled.",
        "python_calls", lambda _session: ["name"], _python, _call_columns, _call_words,
        calls_with_python,
    ),
}  # fmt: skip
