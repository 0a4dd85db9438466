"""Step 4 asks: where does the training loop spend its time."""

from __future__ import annotations

import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis.phases import phases
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.findings._per_step import optimizer_launches
from maiprof_nb.findings.trust import reservations
from maiprof_nb.findings.verdict import Verdict
from maiprof_nb.session import Session

_SMALL_KERNEL_NS = 10_000
_MANY_KERNELS_PER_STEP = 100


def loop_verdict(session: Session) -> Verdict:
    """Say how host and device time divide among the phases of the loop.

    Raises
    ------
    NotAnswerableError
        If the recording holds no host events.
    """
    found = phases(session)
    if not found["host_ns"].any():
        raise NotAnswerableError(
            "no host events were recorded, so phases cannot be told apart",
            remedy="Record with ProfilerActivity.CPU",
        )
    window = figure_window(session)
    host = found.sort_values("host_ns", ascending=False)
    parts = ", ".join(
        f"{row.phase} {units.percent(row.host_share)}" for row in host.itertuples() if row.host_ns
    )
    optimizer = found[found["phase"] == "optimizer"].iloc[0]
    figure = f"Host time over {window.reason}: {parts}."
    a_step, said = optimizer_launches(session, int(optimizer["kernels"]))
    if a_step:
        figure += (
            f" The optimizer launches {said}, {units.duration(optimizer['mean_kernel_ns'])} each "
            "on average."
        )
    small = a_step > _MANY_KERNELS_PER_STEP and optimizer["mean_kernel_ns"] < _SMALL_KERNEL_NS
    return Verdict(
        question="Where does the training loop spend its time?",
        figure=figure,
        meaning=_meaning(host.iloc[0], small=small),
        attempt=(
            "Use the multi-tensor optimizer: pass fused=True (or foreach=True) to it. "
            "Size of the change: 1 line."
            if small
            else ""
        ),
        evidence=found,
        reservations=reservations(session, "phases"),
    )


def _meaning(largest: pd.Series, *, small: bool) -> str:
    said = [
        f"Most of the host's time in the loop goes to {largest['phase']}"
        + (
            " (Python between the recorded ranges, waiting for the GPU, logging)."
            if largest["phase"] == "other"
            else "."
        ),
        "Device work counts for the phase that launched it, even if it runs later.",
    ]
    if small:
        said.append("The optimizer's many small kernels cost launches, not computing.")
    return " ".join(said)
