"""Writes docs/peers.md: our figures beside those of other tools, run on the same files.

``python docs/make_peers.py CORPUS --tensorboard PYTHON --hta PYTHON``

Each PYTHON is an interpreter in which that tool is installed (torch-tb-profiler 0.4.3,
HolisticTraceAnalysis); every number on the page comes from running both sides.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import maiprof_nb
from maiprof_nb import NotAnswerableError, Session
from maiprof_nb.analysis._intervals import clip, union
from maiprof_nb.analysis.device_activity import breakdown, require_activity
from maiprof_nb.analysis.sm_efficiency import sm_efficiency
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.analysis.tensor_cores import tensor_cores
from maiprof_nb.timebase import TimeWindow

Figures = dict[str, dict[str, float | None]]

HERE = Path(__file__).parent
TARGET = HERE / "peers.md"
HEAD = """# Beside other tools

The same figures of the same public traces, ours and theirs, each computed by running the tool.
Written by `docs/make_peers.py`. *same* = to the four digits shown.

"""
_TENSORBOARD = (
    "kineto-resnet50-workers/num_workers_0.worker0.1623143089861.pt.trace.json.gz",
    "kineto-resnet50-workers/num_workers_4.worker0.1623212756351.pt.trace.json.gz",
    "hta-alexnet/benchmark_result_2869224_1695835535_trace.json.gz",
    "kineto-gpu-metrics-counters/gpu_metrics_input.json",
    "tracelens-qwen-h100-mi300/h100.Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
)
_HTA = (
    "hta-df-index-resolver/df_index_resolver.json.gz",
    "hta-nccl-args/nccl_data.json.gz",
    "torchrec-a2a-qcomm-4ranks/*_54105.*.gz",
)
_NO_STEPS = (
    "no steps were marked: theirs takes first to last operator as one and leaves out kernels that "
    "end later, ours takes first to last device work"
)
_WHY_TENSORBOARD = dict.fromkeys(
    ("GPU utilisation", "est. SM efficiency", "est. achieved occupancy"), _NO_STEPS
) | {
    "tensor-core share of kernel time": "theirs ties no kernel of this file to an operator, and "
    "counts only kernels it can tie"
}
_WHY_HTA = (
    "theirs keeps only work launched in all steps but the last, and takes the time of other work "
    "in the same window as idle"
)
_ROUNDED = "theirs rounds kernels inwards to whole microseconds"
_UNROUNDED = {"HTA_DISABLE_NS_ROUNDING": "1"}


def main() -> None:
    """Compare, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--tensorboard", required=True, help="Python with torch-tb-profiler")
    parser.add_argument("--hta", required=True, help="Python with HolisticTraceAnalysis")
    options = parser.parse_args()
    kineto = options.corpus / "kineto"
    rows = ["## torch-tb-profiler 0.4.3\n", *_table()]
    for pattern in _TENSORBOARD:
        path = _only(kineto, pattern)
        theirs = _run(options.tensorboard, "_peer_tensorboard.py", path)
        rows += _rows_of_tensorboard(path, theirs)
    rows += [
        "\n## HolisticTraceAnalysis\n",
        "*ours, their work* leaves out what they leave out; *theirs, unrounded* is theirs with "
        "`HTA_DISABLE_NS_ROUNDING=1`.\n",
        "| file | figure | ours | ours, their work | theirs | theirs, unrounded | why they differ |",
        "|---|---|---|---|---|---|---|",
    ]
    for pattern in _HTA:
        path = _only(kineto, pattern)
        rank = maiprof_nb.load(path).ranks or [0]
        command = (options.hta, "_peer_hta.py", path, str(rank[0]))
        rows += _rows_of_hta(path, _run(*command), _run(*command, environment=_UNROUNDED))
    TARGET.write_text(HEAD + "\n".join(rows) + "\n", encoding="utf-8")


def _table() -> list[str]:
    return [
        "| file | device | figure | ours | theirs | why they differ |",
        "|---|---|---|---|---|---|",
    ]


def _only(folder: Path, pattern: str) -> Path:
    (path,) = folder.glob(pattern)
    return path


def _run(
    python: str, script: str, path: Path, *more: str, environment: dict[str, str] | None = None
) -> Figures:
    command = [python, str(HERE / script), str(path), *more]
    done = subprocess.run(  # noqa: S603 - the interpreters named by who runs this
        command,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **(environment or {})},
    )
    found: Figures = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def _rows_of_tensorboard(path: Path, theirs: Figures) -> Iterator[str]:
    ours = _like_tensorboard(maiprof_nb.load(path))
    for device, figures in theirs.items():
        for figure, value in figures.items():
            mine = _text(ours.get(device, {}).get(figure))
            reason = "same" if mine == _text(value) else _WHY_TENSORBOARD[figure]
            yield f"| {_named(path)} | {device} | {figure} | {mine} | {_text(value)} | {reason} |"


def _rows_of_hta(path: Path, theirs: Figures, unrounded: Figures) -> Iterator[str]:
    everything, their_work = _like_hta(maiprof_nb.load(path))
    for figure, value in theirs[""].items():
        numbers = (everything[figure], their_work[figure], value, unrounded[""][figure])
        mine, alike, other, exact = (_text(number) for number in numbers)
        reasons = [_WHY_HTA] * (mine != alike) + [_ROUNDED] * (other != exact)
        said = "same" if mine == other else "; ".join(reasons) or "not known"
        yield f"| {_named(path)} | {figure} | {mine} | {alike} | {other} | {exact} | {said} |"


def _named(path: Path) -> str:
    return f"{path.parent.name}/{path.name.split('.')[0][:24]}"


def _text(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{value * 100:.4g} %"


def _like_tensorboard(session: Session) -> dict[str, dict[str, float]]:
    """Kernels over the steps, by device."""
    window = figure_window(session).window
    found: dict[str, dict[str, float]] = {}
    work = session.table("kernels")
    for one in require_activity(session):
        ours = work[work["device"] == one.device]
        ours = ours[ours["kind"].isin(["compute", "communication"])]
        found[str(one.device)] = {"GPU utilisation": _covered(ours, window)}
    for figures in (_sm(session), _tensor(session)):
        for device, values in figures.items():
            found.setdefault(device, {}).update(values)
    return found


def _covered(work: Any, window: TimeWindow) -> float:
    start = work["ts_ns"].to_numpy()
    busy = clip(union(start, start + work["dur_ns"].to_numpy()), window.start_ns, window.end_ns)
    return busy.length_ns / max(window.dur_ns, 1)


def _sm(session: Session) -> dict[str, dict[str, float]]:
    try:
        found = sm_efficiency(session)
    except NotAnswerableError:
        return {}
    return {
        str(row.device): {
            "est. SM efficiency": float(row.est_sm_efficiency),
            "est. achieved occupancy": float(row.est_occupancy),
        }
        for row in found.itertuples()
    }


def _tensor(session: Session) -> dict[str, dict[str, float]]:
    return {
        str(row.device): {"tensor-core share of kernel time": float(row.tensor_core_share)}
        for row in tensor_cores(session).itertuples()
    }


def _like_hta(session: Session) -> tuple[dict[str, float], dict[str, float]]:
    """First to last work launched in all steps but the last: with all work, and with only that."""
    (recording,) = session.recordings
    work = recording.table("kernels")
    marks = recording.table("steps").sort_values("ts_ns")
    launches = recording.table("launches").drop_duplicates("correlation")
    if len(marks) > 1:
        kept = launches["ts_ns"].between(marks["ts_ns"].iloc[0], marks["ts_ns"].iloc[-1] - 1)
        work = work[work["correlation"].isin(launches.loc[kept, "correlation"])]
    tables = dict(recording.tables) | {"kernels": work.reset_index(drop=True)}
    only = Session([replace(recording, tables=tables, known_span=recording.span)])
    placed = only.table("kernels")
    window = TimeWindow(int(placed["ts_ns"].min()), int((placed["ts_ns"] + placed["dur_ns"]).max()))
    return _times(session.select(window=window)), _times(only.select(window=window))


def _times(session: Session) -> dict[str, float]:
    row = breakdown(session).iloc[0]
    other = row["exposed_communication_ns"] + row["exposed_copy_ns"]
    return {
        "idle": row["idle_ns"] / row["window_ns"],
        "compute": row["compute_ns"] / row["window_ns"],
        "not compute, not idle": other / row["window_ns"],
        "overlap": float(row["overlap_share"]),
    }


if __name__ == "__main__":
    main()
