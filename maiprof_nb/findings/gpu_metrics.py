"""Step 3 asks: how well is the GPU used while it works."""

from __future__ import annotations

import pandas as pd

from maiprof_nb.analysis.metrics import metric_summary
from maiprof_nb.analysis.sampled_quantities import sampled
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.findings.trust import reservations
from maiprof_nb.findings.verdict import Verdict
from maiprof_nb.session import Session

_LOW_OCCUPANCY, _LOW_TENSOR, _ROOMY = 0.25, 0.01, 0.6


def metrics_verdict(session: Session) -> Verdict:
    """Say what the samplers measured over the window of the figures.

    Raises
    ------
    NotAnswerableError
        If no metrics were loaded, or none lie in the window.
    """
    window = figure_window(session)
    summary = metric_summary(session, window=window.window)
    if summary.empty:
        raise NotAnswerableError(
            "no GPU metrics lie in the window of the figures",
            remedy="Sample the GPU beside the job (nvidia-smi --query-gpu=... -l 1, dcgmi dmon, "
            "dcgm-exporter) and load the folder that holds trace and metrics",
        )
    occupancy = _mean(summary, "sm occupancy")
    active = _mean(summary, "sm activity")
    tensor = _mean(summary, "tensor activity")
    memory = _memory_share(summary)
    said = [
        _words("SM occupancy", occupancy, "mean"),
        _words("SM activity", active, "mean"),
        _words("Tensor Core activity", tensor, "mean"),
        _words("GPU memory used at most", memory, ""),
    ]
    known = [text for text in said if text]
    if not known:
        names = ", ".join(sorted(set(summary["counter"].astype("str"))))
        known = [f"Sampled were {names}; none of them tells how well the SMs are used"]
    return Verdict(
        question="How well is the GPU used while it works?",
        figure="; ".join(known) + f" (over {window.reason}).",
        meaning=_meaning(occupancy, tensor, memory),
        attempt=_attempt(tensor, memory),
        evidence=summary,
        reservations=reservations(session, "metrics"),
    )


def _mean(summary: pd.DataFrame, quantity: str) -> float | None:
    """Mean share, 0 to 1, over the devices and samplers."""
    rows = sampled(summary, quantity)
    means = (rows["mean"] * rows["scale"]).dropna()
    return float(means.mean()) / 100 if len(means) else None


def _memory_share(summary: pd.DataFrame) -> float | None:
    used, total = _most(summary, "memory used"), _most(summary, "memory total")
    return used / total if used is not None and total else None


def _most(summary: pd.DataFrame, quantity: str) -> float | None:
    rows = sampled(summary, quantity)
    most = (rows["maximum"] * rows["scale"]).dropna()
    return float(most.max()) if len(most) else None


def _words(title: str, share: float | None, how: str) -> str:
    return "" if share is None else f"{title} {share * 100:.2f} %{' ' + how if how else ''}"


def _meaning(occupancy: float | None, tensor: float | None, memory: float | None) -> str:
    said = []
    if occupancy is not None and occupancy < _LOW_OCCUPANCY:
        said.append(
            "Few warps are resident on the SMs (this counts idle time too): the work comes too "
            "late or in pieces too small."
        )
    if tensor is not None and tensor < _LOW_TENSOR:
        said.append("The Tensor Cores do nothing: matrix work runs in full precision.")
    if memory is not None and memory < _ROOMY:
        said.append("Much of the GPU's memory is never used: a larger batch would fit.")
    return " ".join(said) or (
        "Nothing sampled stands out. NVML's utilisation only says that some kernel was resident, "
        "not how well it used the GPU."
    )


def _attempt(tensor: float | None, memory: float | None) -> str:
    tries = []
    if memory is not None and memory < _ROOMY:
        tries.append("Double the batch size, and adapt the learning rate (2 settings).")
    if tensor is not None and tensor < _LOW_TENSOR:
        tries.append(
            "Use automatic mixed precision: torch.autocast round the forward pass, and a gradient "
            "scaler for float16 (about 13 lines)."
        )
    return " ".join(tries)
