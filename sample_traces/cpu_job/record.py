"""Record ``train.py`` from outside: the script itself knows nothing of a profiler.

Usage: ``python sample_traces/cpu_job/record.py`` (needs torch; a minute; the times in the
recording are those of the machine it runs on, so every recording differs).
"""

from __future__ import annotations

import functools
import gzip
import json
import os
import platform
import re
import runpy
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.profiler import ProfilerActivity, profile, schedule

HERE = Path(__file__).resolve().parent
OUT = HERE / "recording"
STEPS_PER_SUB_DATASET = 10  # 10 epochs of one batch
OPTIONS = {"rows": 120_000, "batch": 768, "batches": 1, "epochs": 10, "sub-datasets": 4}
WINDOW = schedule(wait=3, warmup=1, active=3 * STEPS_PER_SUB_DATASET, repeat=1)


def step_marks(profiler: profile) -> None:
    """Advance `profiler` once an optimizer step, from the first one on.

    The hook runs inside the range ``Optimizer.step#...``, and a step mark set there would
    straddle that range. So it only puts a wrapper round the optimizer's `step`.
    """

    def wrap(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        handle.remove()
        kind: Any = type(optimizer)
        inner = kind.step

        @functools.wraps(inner)
        def step(*args: Any, **kwargs: Any) -> Any:
            result = inner(*args, **kwargs)
            profiler.step()
            return result

        kind.step = step

    handle = register_optimizer_step_post_hook(wrap)


def averages(profiler: profile, names: set[str]) -> dict[str, dict[str, float]]:
    """What ``key_averages()`` says of `names`, so that a test can compare without torch.

    It counts an event that is the only child of one of its own name together with that one,
    calls all step marks ``ProfilerStep*``, and takes Python functions for children.
    """
    return {
        event.key: {
            "calls": event.count,
            "cpu_total_us": event.cpu_time_total,
            "self_cpu_us": event.self_cpu_time_total,
        }
        for event in profiler.key_averages()
        if event.key in names
    }


def masked(trace: str) -> str:
    """The trace without what tells of this machine: addresses, host name, absolute paths."""
    trace = re.sub(r"0x[0-9a-f]{6,}", "0x0", trace)
    trace = re.sub(r'"traceName": "[^"]*"', '"traceName": "trace.json"', trace)
    for private in {
        str(HERE),
        str(Path.home()),
        sys.prefix,
        sys.base_prefix,
        tempfile.gettempdir(),
    }:
        trace = trace.replace(private, "")
    return re.sub(rf"\b{re.escape(platform.node() or 'localhost')}\b", "host", trace)


def keep(profiler: profile) -> None:
    """Write trace and averages; called when the recorded window is over."""
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(plain))
        trace = masked(plain.read_text())
    events = json.loads(trace)["traceEvents"]
    names = {event["name"] for event in events if event.get("cat") in ("cpu_op", "user_annotation")}
    known = json.dumps(averages(profiler, names | {"ProfilerStep*"}), indent=1, sort_keys=True)
    (OUT.parents[1] / "truth" / "cpu_job.json").write_text(f"{known}\n")
    packed = gzip.compress(trace.encode(), mtime=0)
    (OUT / "rank0.pt.trace.json.gz").write_bytes(packed)
    print(f"{len(packed):,} bytes, {len(events):,} events")


def main() -> None:
    """Run the script under the profiler."""
    os.chdir(HERE)  # the names of its frames become relative
    sys.argv = ["train.py", *(f"--{name}={value}" for name, value in OPTIONS.items())]
    torch.set_num_threads(1)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=WINDOW,
        on_trace_ready=keep,
        with_stack=True,
        record_shapes=True,
        profile_memory=True,
    ) as profiler:
        step_marks(profiler)
        runpy.run_path("train.py", run_name="__main__")


if __name__ == "__main__":
    main()
