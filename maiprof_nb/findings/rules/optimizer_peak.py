"""The most memory is in use in the optimizer's step, not in the forward or backward pass."""

from __future__ import annotations

import pandas as pd

from maiprof_nb import units
from maiprof_nb.analysis._device_logs import device_logs
from maiprof_nb.analysis._device_peaks import device_peak
from maiprof_nb.analysis.device_size import device_size
from maiprof_nb.analysis.memory_peak import OPTIMIZER, MemoryPeak
from maiprof_nb.errors import NotAnswerableError
from maiprof_nb.findings.rule import Answer, Found, NotApplicable, Passed, Rule
from maiprof_nb.findings.rules._memory import live_rows, no_snapshot, on
from maiprof_nb.session import Session

PASSING_SHARE = 0.05  # of the peak, in temporaries of the optimizer: a setting does without
FULL_SHARE = 0.8  # of the device: below it the peak is no matter of what fits


def ask(session: Session) -> Answer:
    """In which phase most is allocated; found where it is the optimizer's step.

    Then activations are not what fills the device, so a smaller batch or checkpointing wins
    nothing. Low, but medium where temporaries of the optimizer are 5 % of the peak or the device is
    known to be 80 % full. The phase is that of the snapshot's ranges, the trace beside it or the
    stack that made the peak. In a selected window its peak counts.
    """
    try:
        logs = device_logs(session)
    except NotAnswerableError:
        return NotApplicable(no_snapshot(session))
    peaks = [device_peak(session, log) for log in logs]
    told = [peak for peak in peaks if peak.phase is not None]
    if not told:
        return NotApplicable(
            "Nothing says in which phase the peak lies. Record stacks "
            "(_record_memory_history(stacks='python')) or a trace beside the snapshot."
        )
    worst = max(told, key=lambda one: (one.phase == OPTIMIZER, one.peak_bytes))
    said = f"The peak of {units.size(worst.peak_bytes)}{on(session, worst.log)} lies in "
    if worst.phase != OPTIMIZER:
        return Passed(f"{said}phase {worst.phase}.")
    parts = worst.by("category")
    passing = _passing(worst)
    listed = ", ".join(
        f"{row['category']} {units.size(int(row['size_bytes']))}"
        for row in parts.to_dict("records")
        if row["size_bytes"] >= 0.01 * worst.peak_bytes
    )
    size = device_size(session, worst.log.device)
    full = size is not None and (worst.reserved_bytes or worst.peak_bytes) >= (
        FULL_SHARE * size.size_bytes
    )
    large = passing >= PASSING_SHARE * worst.peak_bytes
    return Found(
        title=f"{said}the optimizer's step: {listed}; its temporaries are {units.size(passing)}",
        severity="medium" if full or large else "low",
        size_bytes=worst.peak_bytes,
        evidence=[
            {
                "table": "allocations",
                "recording": worst.log.device.recording,
                "device": worst.log.device.device,
                "ts_ns": worst.ts_ns,
                "step": worst.step,
                "peak_bytes": worst.peak_bytes,
                "temporaries_bytes": passing,
                **{
                    f"{str(row['category']).replace(' ', '_')}_bytes": int(row["size_bytes"])
                    for row in parts.to_dict("records")
                    if str(row["category"]) != "temporaries"
                },
            },
            *live_rows(worst.log, worst.state),
        ],
        advice=_TEMPORARIES if large else None,
    )


def _passing(peak: MemoryPeak) -> int:
    """Bytes at the peak that the optimizer made and gave back."""
    live: pd.DataFrame = peak.live
    made = live["phase"].astype(object).eq(OPTIMIZER).fillna(value=False).to_numpy(bool)
    freed = live["fate"].eq("freed").to_numpy(bool)
    return int(live["size_bytes"][made & freed].sum())


_TEMPORARIES = (
    "Build the optimizer with fused=True (or foreach=False): a multi-tensor step holds temporaries "
    "as large as the parameters it updates at once."
)
RULE = Rule(
    id="optimizer-peak",
    question="Does the peak lie in the optimizer's step?",
    figures=("memory-peak",),
    view="memory",
    advice="Lower what stays: step inside the backward pass so that gradients are freed one by one "
    "(register_post_accumulate_grad_hook), 8-bit or bf16 optimizer state, or shard both over the "
    "ranks (FSDP, ZeRO). A smaller batch wins nothing; a larger one costs nothing until the "
    "forward pass reaches this peak.",
    change="3 to 10 lines",
    ask=ask,
)
