"""Passes of a generating model -> panels over time: which stage, and how long."""

from __future__ import annotations

import numpy as np
import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis.generation_stages import STAGES
from maiprof_nb.timebase import TimeWindow
from maiprof_widgets.figures.panels import Panel
from maiprof_widgets.figures.utilisation import segments

MAX_PASSES = 1500
_STAGE_PX, _LENGTH_PX = 30, 130


def generation_panels(
    passes: pd.DataFrame, window: TimeWindow, series: tuple[str, ...]
) -> list[Panel]:
    """A row a stage with a bar a pass, and the length of each pass beneath.

    Parameters
    ----------
    passes : DataFrame
        Rows of `maiprof_nb.analysis.generation.generation`, of one recording.
    window : TimeWindow
        Time shown.
    series : tuple of str
        Colours, one a stage.
    """
    found = {stage: passes[passes["stage"] == stage] for stage in STAGES}
    found = {stage: _together(_inside(rows, window), window) for stage, rows in found.items()}
    some = {stage for stage in STAGES if (passes["stage"] == stage).any()}
    rows = [stage for stage in STAGES if stage in some][::-1]
    height = {stage: rows.index(stage) for stage in rows}
    bars = tuple(
        segments(
            stage, part["ts_ns"], part["end_ns"], height.get(stage, 0), _words(stage, part),
            series[STAGES.index(stage)], 16,
        )
        for stage, part in found.items()
    )  # fmt: skip
    lengths = tuple(
        segments(
            stage, part["ts_ns"], part["end_ns"], part["length_ns"].to_numpy(float) / 1e6,
            _words(stage, part), series[STAGES.index(stage)], 3,
        )
        for stage, part in found.items()
    )  # fmt: skip
    return [
        Panel(
            "Passes of the model, to the end of the device work each launched",
            "",
            bars,
            height_px=_STAGE_PX * len(rows) + 10,
            bounds=(-0.6, len(rows) - 0.4),
            ticks={float(at): stage for stage, at in height.items()},
            empty="no pass in this window",
        ),
        Panel("Length of each pass", "ms", lengths, height_px=_LENGTH_PX, empty=""),
    ]


def _inside(rows: pd.DataFrame, window: TimeWindow) -> pd.DataFrame:
    return rows[(rows["ts_ns"] < window.end_ns) & (rows["end_ns"] > window.start_ns)]


def _together(rows: pd.DataFrame, window: TimeWindow) -> pd.DataFrame:
    """Passes too close to be told apart as one, with their number and mean length."""
    rows = rows.assign(length_ns=rows["end_ns"] - rows["ts_ns"], passes=1)
    if len(rows) <= MAX_PASSES:
        return rows
    width = max(window.dur_ns // MAX_PASSES, 1)
    by = rows.groupby(np.maximum(rows["ts_ns"] - window.start_ns, 0) // width)
    return by.agg(
        ts_ns=("ts_ns", "min"),
        end_ns=("end_ns", "max"),
        length_ns=("length_ns", "mean"),
        passes=("passes", "sum"),
        tokens=("tokens", "sum"),
        kernels=("kernels", "sum"),
        launches=("launches", "sum"),
    )


def _words(stage: str, rows: pd.DataFrame) -> list[str]:
    made = []
    for row in rows.itertuples():
        length = units.duration(row.length_ns)
        several = f"{units.count(row.passes)} passes of {stage}: {length} each"
        said = [several if row.passes > 1 else f"{stage}: {length}"]
        if not pd.isna(row.tokens):
            said.append(f"{units.count(row.tokens)} tokens")
        said.append(f"{units.count(row.launches)} launches, {units.count(row.kernels)} kernels")
        made.append(", ".join(said))
    return made
