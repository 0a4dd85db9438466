"""Tables of utilisation, steps and marks -> panels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb import units
from maiprof_widgets import escaping
from maiprof_widgets.figures.panels import Curve, Panel

_MANY_DEVICES, _MANY_HOSTS = 2, 1  # more than so many lie over one another: rows of colour
_ROW_PX, _LEAST_PX, _MOST_PX = 17, 60, 420
_STEPS_AT, _MARKS_AT, _STAGGER = 0.9, 0.0, 0.45  # neighbouring steps at two heights


def gpu_panel(use: pd.DataFrame, measured: pd.DataFrame) -> Panel:
    """Share of time each device was busy, and what a sampler measured beside it.

    Parameters
    ----------
    use : DataFrame
        Rows of `maiprof_nb.analysis.utilisation.utilisation`.
    measured : DataFrame
        Rows of `maiprof_nb.analysis.metrics.metric_series`, with their ``scale`` to percent.
    """
    rows = use[use["what"] == "gpu"]
    groups = list(rows.groupby("series", sort=False))
    if len(groups) > _MANY_DEVICES:
        return heat_panel("GPU: share of time with any work, one row a device", "%", groups, 100)
    style = "area" if len(groups) == 1 else "line"
    curves = [
        Curve(f"{label} (trace)", r["ts_ns"].to_numpy(), r["value"].to_numpy() * 100, style)
        for label, r in groups
    ]
    curves += _sampled(measured, "dash")
    return Panel(
        "GPU: share of time with any work",
        "%",
        tuple(curves),
        height_px=150,
        bounds=(0, 105),
        empty="no device work was recorded: record with ProfilerActivity.CUDA, or load GPU metrics",
    )


def cpu_panel(measured: pd.DataFrame) -> Panel:
    """Share of all cores that was busy, as a sampler measured it.

    Parameters
    ----------
    measured : DataFrame
        Rows of `maiprof_nb.analysis.metrics.metric_series`, with their ``scale`` to percent.
    """
    return Panel(
        "CPU utilisation as measured: share of all cores that was busy",
        "%",
        tuple(_sampled(measured, "line")),
        height_px=110,
        bounds=(0, 105),
        empty="no sample in this window",
    )


def _sampled(measured: pd.DataFrame, style: str) -> list[Curve]:
    keys = ["recording", "device", "counter"]
    return [
        Curve(
            f"{device_name(device)} {escaping.text(counter)} (sampled)",
            rows["ts_ns"].to_numpy(),
            (rows["value"] * rows["scale"]).to_numpy(),
            style,
        )
        for (_, device, counter), rows in measured[measured["scale"].notna()].groupby(
            keys, observed=True, dropna=False, sort=False
        )
    ]


def device_name(name: object) -> str:
    """A sampler's name of a device, escaped, for people; the host where it names none."""
    if pd.isna(name):
        return "host"
    return f"GPU {name}" if str(name).isdigit() else escaping.shortened(name, 40)


def host_panel(use: pd.DataFrame) -> Panel:
    """Threads inside recorded events."""
    hosts = list(use[use["what"] == "framework"].groupby("series", sort=False))
    if len(hosts) > _MANY_HOSTS:
        title = "CPU: threads in operators and launch calls, one row a rank (not CPU utilisation)"
        return heat_panel(title, "threads", hosts, None)
    curves = []
    for what, style, words in (
        ("framework", "area", "in operators and launch calls"),
        ("recorded", "line", "in any recorded event"),
    ):
        for _, rows in use[use["what"] == what].groupby("series", sort=False):
            curves.append(Curve(words, rows["ts_ns"].to_numpy(), rows["value"].to_numpy(), style))
    return Panel(
        "CPU: threads at work as recorded (not CPU utilisation)",
        "threads",
        tuple(curves),
        height_px=130,
        empty="no host events were recorded: record with ProfilerActivity.CPU",
    )


def heat_panel(
    title: str, unit: str, groups: list[tuple[object, pd.DataFrame]], highest: float | None
) -> Panel:
    """One row of colour a series; all series have the same bins."""
    scale = 100.0 if unit == "%" else 1.0
    bins = groups[0][1]
    edges = np.append(bins["ts_ns"], bins["ts_ns"].iloc[-1:] + bins["dur_ns"].iloc[-1:])
    values = np.stack([rows["value"].to_numpy() * scale for _, rows in groups])
    names = _row_names([str(label) for label, _ in groups])
    return Panel(
        title,
        unit,
        (Curve(title, edges.astype(np.int64), values, "heat", names),),
        height_px=min(max(_ROW_PX * len(groups), _LEAST_PX), _MOST_PX),
        bounds=(0, highest or max(1.0, float(np.ceil(np.nanmax(values, initial=0))))),
    )


def _row_names(labels: list[str]) -> tuple[str, ...]:
    """Labels as short as they can be told apart: they stand beside the axis."""
    short = [label.replace(" host", "") for label in labels]
    ranks = [label.partition(", GPU")[0] for label in short]
    if len(set(ranks)) == len(ranks):
        return tuple(ranks)
    return tuple(label.replace("rank ", "").replace(", GPU ", " / GPU ") for label in short)


def marks_panel(
    steps: pd.DataFrame,
    marks: pd.DataFrame,
    chosen: str | None,
    colours: tuple[str, str],
    least_ns: int = 0,
) -> Panel:
    """Steps, and the calls of the chosen operator.

    Parameters
    ----------
    steps : DataFrame
        ``step``, ``ts_ns``, ``dur_ns``.
    marks : DataFrame
        ``ts_ns``, ``end_ns``, ``calls``.
    chosen : str or None
        Escaped name of the chosen operator.
    colours : (str, str)
        Of steps and of marks.
    least_ns : int
        Marks are drawn at least so wide, so that a single short call can be seen.
    """
    step_texts = [f"step {row.step}: {units.duration(row.dur_ns)}" for row in steps.itertuples()]
    mark_texts = [
        f"{chosen}: {row.calls} call{'s' if row.calls > 1 else ''}, "
        f"{units.duration(row.end_ns - row.ts_ns)}"
        for row in marks.itertuples()
    ]
    drawn_to = marks["end_ns"].clip(lower=marks["ts_ns"] + least_ns)
    return Panel(
        f"Steps, and calls of {chosen}"
        if chosen
        else "Steps (choose an operator in the table to mark its calls)",
        "",
        (
            segments(
                "steps",
                steps["ts_ns"],
                steps["ts_ns"] + steps["dur_ns"],
                _STEPS_AT + _STAGGER * (steps["step"].to_numpy() % 2),
                step_texts,
                colours[0],
                7,
            ),
            segments("marks", marks["ts_ns"], drawn_to, _MARKS_AT, mark_texts, colours[1], 11),
        ),
        height_px=46,
        bounds=(-0.6, 1.6),
        ticks={_STEPS_AT: "steps", _MARKS_AT: "calls"},
        empty="no steps were recorded",
    )


def segments(
    name: str,
    start: pd.Series,
    end: pd.Series,
    height: npt.NDArray[np.float64] | float,
    texts: list[str],
    colour: str,
    width: float,
) -> Curve:
    """One line with a break after each interval."""
    count = len(start)
    ts_ns = np.empty(3 * count, dtype=np.int64)
    ts_ns[0::3], ts_ns[1::3], ts_ns[2::3] = start, end, end
    values = np.repeat(np.broadcast_to(np.asarray(height, dtype=np.float64), count), 3)
    values[2::3] = np.nan
    return Curve(
        name,
        ts_ns,
        values,
        "segments",
        tuple(t for text in texts for t in (text, text, "")),
        colour,
        width,
    )
