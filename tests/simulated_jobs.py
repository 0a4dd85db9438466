"""States of the simulated job beside the shipped ones: what each shows on purpose, and how much."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import maiprof_nb
from maiprof_nb.collection.simulation import SCENARIOS, recording_files, simulate
from maiprof_nb.collection.simulation.device import Device
from maiprof_nb.collection.simulation.schedule import recorded_window
from maiprof_nb.collection.simulation.training import Run
from maiprof_nb.collection.simulation.truth import truth

_BEFORE, _AMP, _LAST = (SCENARIOS[name] for name in ("before", "amp", "optimizer"))
_QUICK = {"first_step": 2, "pretrained_items": 400_000}
_SMALL = replace(_BEFORE, rows_per_batch=512, num_worker_threads=64, steps=8, **_QUICK)
_LAST_PINNED = replace(
    _LAST, rows_per_batch=393_216, num_worker_threads=128, pinned=True, steps=9, **_QUICK
)
_SLOW_DEVICE = Device(flops_fp32=2.2e12, flops_fp16=21.5e12, bytes_per_s=0.185e12)

JOBS = {
    # 762 columns go into the first product, no multiple of 8
    "misaligned": (replace(_AMP, numeric_columns=250, steps=3, **_QUICK), None),
    # 512 rows keep the device busy for 2 ms a step
    "small batch": (_SMALL, None),
    # and every layer's output is looked at
    "checks": (replace(_SMALL, checks=True), None),
    # each step sends its batch three times
    "sent thrice": (replace(_BEFORE, sends=3, steps=3, **_QUICK), None),
    # the last state with pinned batches and workers for a device eight times as slow
    "healthy": (_LAST_PINNED, _SLOW_DEVICE),
    # and the same from 7 s on with 900 of 1410 MHz
    "hot": (_LAST_PINNED, replace(_SLOW_DEVICE, hot_from_ns=7_000_000_000)),
}


@dataclass(frozen=True)
class Job:
    """A simulated run, the session of its files, and what it knows of itself."""

    run: Run
    session: maiprof_nb.Session
    truth: dict[str, Any]

    def device_ns(self, *names: str) -> int:
        """Time of the recorded steps' device work with one of these in its name."""
        start, end = recorded_window(self.run)
        return sum(
            activity.dur_ns
            for activity in self.run.machine.activities
            if start <= activity.start_ns < end and any(name in activity.name for name in names)
        )


@cache
def job(name: str) -> Job:
    """One of ``JOBS``, or a shipped state, simulated once a process."""
    scenario, device = JOBS[name] if name in JOBS else (SCENARIOS[name], None)
    run = simulate(scenario, device)
    with tempfile.TemporaryDirectory() as folder:
        for file, data in recording_files(run).items():
            if file != "truth.json":
                (Path(folder) / file).write_bytes(data)
        return Job(run, maiprof_nb.load(folder), truth(run))
