"""Writes docs/peers.md: our figures beside those of other tools, run on the same files.

``python docs/make_peers.py CORPUS --tensorboard PYTHON --hta PYTHON``

Each PYTHON is an interpreter in which that tool is installed (torch-tb-profiler 0.4.3,
HolisticTraceAnalysis); every number on the page comes from running both sides.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
from collections.abc import Callable, Iterator
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
_WHY_TENSORBOARD = {
    "GPU utilisation": "theirs counts kernels only and ends with the last step's mark or kernel; "
    "ours (`kernel utilisation`) is over the same steps",
    "est. SM efficiency": "the window, as above",
    "est. achieved occupancy": "the window, as above: kernels cut by its edges weigh less",
    "tensor-core share of kernel time": "their list of names counts `xmma_gemm` and `conv1x1` in "
    "plain arithmetic, and misses FlashAttention, `nvjet` and AMD; theirs counts kernels launched "
    "outside the steps, too",
}
_WHY_HTA = {
    "overlap": "theirs rounds each kernel's start up and end down to whole microseconds",
}
_WHY_HTA_TIMES = (
    "theirs leaves out the last step and what was launched outside steps, rounds kernels inwards "
    "to whole microseconds, and takes first to last kernel as the whole; ours is given that window"
)


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
        rows += _rows(path, theirs, _like_tensorboard, _WHY_TENSORBOARD)
    rows += ["\n## HolisticTraceAnalysis\n", *_table()]
    for pattern in _HTA:
        path = _only(kineto, pattern)
        rank = maiprof_nb.load(path).ranks or [0]
        theirs = _run(options.hta, "_peer_hta.py", path, str(rank[0]))
        rows += _rows(path, theirs, _like_hta, _WHY_HTA)
    TARGET.write_text(HEAD + "\n".join(rows) + "\n", encoding="utf-8")


def _table() -> list[str]:
    return [
        "| file | device | figure | ours | theirs | why they differ |",
        "|---|---|---|---|---|---|",
    ]


def _only(folder: Path, pattern: str) -> Path:
    (path,) = folder.glob(pattern)
    return path


def _run(python: str, script: str, path: Path, *more: str) -> dict[str, dict[str, float | None]]:
    command = [python, str(HERE / script), str(path), *more]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, dict[str, float | None]] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def _rows(
    path: Path,
    theirs: dict[str, dict[str, float | None]],
    ask: Callable[[Session], dict[str, dict[str, float]]],
    why: dict[str, str],
) -> Iterator[str]:
    ours = ask(maiprof_nb.load(path))
    for device, figures in theirs.items():
        for figure, value in figures.items():
            mine = ours.get(device, {}).get(figure)
            same = _text(mine) == _text(value)
            reason = "same" if same else why.get(figure, _WHY_HTA_TIMES)
            yield (
                f"| {path.parent.name}/{path.name[:40]} | {device or '-'} | {figure} | {_text(mine)} "
                f"| {_text(value)} | {reason} |"
            )


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


def _like_hta(session: Session) -> dict[str, dict[str, float]]:
    """First to last work launched in all steps but the last, as theirs is by default."""
    work = session.table("kernels")
    marks = session.table("steps").sort_values("ts_ns")
    launches = session.table("launches").drop_duplicates("correlation")
    if len(marks) > 1:
        end = int(marks["ts_ns"].iloc[-1])
        begin = int(marks["ts_ns"].iloc[0])
        inside = launches[launches["ts_ns"].between(begin, end - 1)]["correlation"]
        work = work[work["correlation"].isin(inside)]
    window = TimeWindow(int(work["ts_ns"].min()), int((work["ts_ns"] + work["dur_ns"]).max()))
    row = breakdown(session.select(window=window)).iloc[0]
    total = window.dur_ns
    return {
        "": {
            "idle": row["idle_ns"] / total,
            "compute": row["compute_ns"] / total,
            "not compute, not idle": (row["exposed_communication_ns"] + row["exposed_copy_ns"])
            / total,
            "overlap": float(row["overlap_share"]),
        }
    }


if __name__ == "__main__":
    main()
