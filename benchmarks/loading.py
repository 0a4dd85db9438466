"""Loading against the floor and a peer, as ratios within one run.

``python benchmarks/loading.py TRACE.json [--hta PYTHON_WITH_HTA] [--copies N ...]``

Each measurement is a process of its own: CPU seconds, wall seconds, and peak memory over that
of an interpreter that has only imported the package. The floor is msgspec decoding the same
bytes into typed structs with their args as dicts. HTA parses the same file, gzipped, with its
default backend. Print ratios; times are only for this machine at this moment.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

_FLOOR = """
import msgspec, pathlib
class Event(msgspec.Struct):
    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: int | str = 0
    tid: int | str = 0
    ts: float = 0
    dur: float = 0
    args: dict = {}
class Trace(msgspec.Struct):
    traceEvents: list[Event]
start()
kept = msgspec.json.decode(pathlib.Path(PATH).read_bytes(), type=Trace)
"""
_OURS = """
import maiprof_nb
start()
kept = maiprof_nb.load(PATH)
kept.table("kernels")
"""
_HTA = """
import logging, warnings
warnings.simplefilter("ignore"); logging.disable(logging.CRITICAL)
from hta.common.trace_parser import parse_trace_dataframe
from hta.configs.parser_config import ParserConfig
start()
kept = parse_trace_dataframe(PATH, ParserConfig.get_default_cfg())
"""
_FRAME = """
import json, resource, time
def rss():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
def start():
    global cpu, wall, base
    cpu, wall, base = time.process_time(), time.perf_counter(), rss()
PATH = {path!r}
{body}
print(json.dumps({{"cpu_s": time.process_time() - cpu, "wall_s": time.perf_counter() - wall,
                  "peak_bytes": rss(), "grown_bytes": rss() - base}}))
"""


def measured(
    body: str, path: Path, *, python: str = sys.executable, cache: str = "off"
) -> dict[str, float]:
    """One measurement in a process of its own."""
    program = _FRAME.format(path=str(path), body=body)
    env = {**os.environ, "MAIPROF_CACHE": cache}
    done = subprocess.run(
        [python, "-c", program], env=env, capture_output=True, text=True, check=True
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace", type=Path)
    parser.add_argument("--hta", help="a Python in which HolisticTraceAnalysis is installed")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    size = options.trace.stat().st_size
    with tempfile.TemporaryDirectory() as folder:
        ours = _best([measured(_OURS, options.trace) for _ in range(options.rounds)])
        floor = _best([measured(_FLOOR, options.trace) for _ in range(options.rounds)])
        first = measured(_OURS, options.trace, cache=folder)
        again = _best([measured(_OURS, options.trace, cache=folder) for _ in range(options.rounds)])
    print(f"file: {size / 1e6:.0f} MB")
    print(f"first load / bare typed decode, CPU: {ours['cpu_s'] / floor['cpu_s']:.2f}")
    print(f"peak memory / file size: {ours['peak_bytes'] / size:.2f}")
    print(f"first load with cache / without, CPU: {first['cpu_s'] / ours['cpu_s']:.2f}")
    print(f"first load / second open, wall: {ours['wall_s'] / again['wall_s']:.0f}")
    if options.hta:
        hta = measured(_HTA, options.trace, python=options.hta)
        print(f"HTA parse / first load, CPU: {hta['cpu_s'] / ours['cpu_s']:.1f}")
        print(f"HTA memory grown / file size: {hta['grown_bytes'] / size:.1f}")


def _best(found: list[dict[str, float]]) -> dict[str, float]:
    """The least of each figure: the others had company on the machine."""
    return {key: min(one[key] for one in found) for key in found[0]}


if __name__ == "__main__":
    main()
