"""The whole diagnosis of a loaded trace against its first load, as a ratio within one run.

``python benchmarks/diagnosing.py TRACE.json [--profile]``

A big trace is made by ``benchmarks/big_trace.py``. The load is without cache and the diagnosis
in the same process right after it, as ``maiprof diagnose`` does both. Prints CPU and wall
ratios, and the rules that took most; a rule pays for the analyses that it is the first to
ask for.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import time
from pathlib import Path

os.environ["MAIPROF_CACHE"] = "off"  # before anything is read

import maiprof_nb
from maiprof_nb.findings.diagnosis import diagnose
from maiprof_nb.findings.rules import RULES

_SHOWN = 12


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace", type=Path)
    parser.add_argument("--profile", action="store_true", help="also the dearest functions")
    options = parser.parse_args()
    cpu, wall = time.process_time(), time.perf_counter()
    session = maiprof_nb.load(options.trace)
    load_cpu, load_wall = time.process_time() - cpu, time.perf_counter() - wall
    profiler = cProfile.Profile() if options.profile else None
    spent = {}
    cpu, wall = time.process_time(), time.perf_counter()
    for rule in RULES:
        began = time.process_time()
        if profiler:
            profiler.enable()
        diagnose(session, rules=[rule.id])
        if profiler:
            profiler.disable()
        spent[rule.id] = time.process_time() - began
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    events = sum(len(session.table(name)) for name in ("operators", "launches", "kernels"))
    events += len(session.table("python_calls"))
    print(f"{events} calls and kernels; first load {load_cpu:.1f} s CPU, {load_wall:.1f} s wall")
    print(f"diagnose / first load, CPU: {cpu / load_cpu:.2f}")
    print(f"diagnose / first load, wall: {wall / load_wall:.2f}")
    for rule, seconds in sorted(spent.items(), key=lambda one: -one[1])[:_SHOWN]:
        print(f"  {seconds / load_cpu:6.3f} of the load  {rule}")
    if profiler:
        pstats.Stats(profiler).sort_stats("cumulative").print_stats(70)


if __name__ == "__main__":
    main()
