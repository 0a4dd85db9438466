"""A memory snapshot of a million events against bare unpickling, as ratios within one run.

``python benchmarks/memory.py SNAPSHOT.pickle[.gz] [--events 1000000] [--rounds 3]``

The log of a real snapshot is repeated until it is long enough; between two turns the blocks
that differ are freed and allocated, so that every turn begins as the first did and the end is
the snapshot's. The first picture is all that a reader waits for: load, replay, and what the
memory view sends of it to a browser 1000 pixels wide, with colours, groups, legend and words. It
is compared with `pickle.load` of the same file, which checks nothing and makes
no table, as Python runs it (with its garbage collector) and with the collector off. Zooms are
answered from the same log. Each is the least of some rounds; times are only for this machine.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import json
import os
import pickle
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import maiprof_nb
from maiprof_nb.analysis.active_memory import memory_log
from maiprof_nb.session import Session
from maiprof_widgets.views.memory import MemoryView

_Row = dict[str, Any]
COLUMNS, ROWS = 1000, 320


def repeated(content: dict[str, Any], events: int) -> dict[str, Any]:
    """The snapshot with the log of its busiest device repeated to at least so many events."""
    traces = content["device_traces"]
    device = max(range(len(traces)), key=lambda number: len(traces[number]))
    trace = traces[device]
    turn = trace + _undoing(trace)
    dur_us = trace[-1]["time_us"] - trace[0]["time_us"] + 1
    turns = -(-events // len(turn))
    made = [
        row | {"time_us": row["time_us"] + number * dur_us}
        for number in range(turns)
        for row in (turn if number < turns - 1 else trace)
    ]
    return content | {"device_traces": [*traces[:device], made, *traces[device + 1 :]]}


def _undoing(trace: list[_Row]) -> list[_Row]:
    """Events that bring the device back to where it was before the log."""
    freed, taken = _differing(trace, "alloc", "free_completed")
    given, segments = _differing(trace, "segment_alloc", "segment_free")
    frees = [row | {"action": a} for row in freed for a in ("free_requested", "free_completed")]
    frees += [row | {"action": "segment_free"} for row in given]
    allocs = [row | {"action": "segment_alloc"} for row in segments]
    allocs += [row | {"action": "alloc"} for row in taken]
    return [row | {"time_us": trace[-1]["time_us"]} for row in frees + allocs]


def _differing(trace: list[_Row], opens: str, closes: str) -> tuple[list[_Row], list[_Row]]:
    """What is there at the end only, and at the beginning only."""
    first: dict[int, _Row] = {}
    last: dict[int, _Row] = {}
    for row in trace:
        if row["action"] in (opens, closes):
            first.setdefault(row["addr"], row)
            last[row["addr"]] = row
    new = [row for at, row in last.items() if row["action"] == first[at]["action"] == opens]
    gone = [row for at, row in first.items() if row["action"] == last[at]["action"] == closes]
    return new, gone


def measured(path: Path) -> dict[str, float]:
    """CPU seconds of each part, in this process; the cache is off."""
    gc.collect()
    found = {"unpickle": _timed(lambda: _unpickled(path))[0]}
    gc.disable()
    found["unpickle without collector"] = _timed(lambda: _unpickled(path))[0]
    gc.enable()
    found["load"], session = _timed(lambda: maiprof_nb.load(path))
    found["replay"], _ = _timed(lambda: memory_log(session))
    found["picture"], view = _timed(lambda: _first_picture(session))
    found["bytes"] = _bytes(view)
    start_us, end_us = view.window_us
    zooms, sizes = [], []
    for share in (10, 100, 1000, 10_000):
        begin_us = (start_us + end_us) / 2
        taken, _ = _timed(partial(view.ask, begin_us, begin_us + (end_us - start_us) / share))
        zooms.append(taken)
        sizes.append(_bytes(view))
    return found | {"zoom": max(zooms), "zoom bytes": max(sizes)}


class _Wired(MemoryView):
    """The view with its messages kept in place of a browser."""

    def send(self, content: Any, buffers: Any = None) -> None:
        self.sent = (content, buffers or [])

    def ask(self, start_us: float, end_us: float) -> None:
        asked = {"kind": "picture", "view": "v", "id": 1, "columns": COLUMNS, "rows": ROWS}
        self._received(self, asked | {"start_us": start_us, "end_us": end_us}, [])
        assert not self.status, self.status


def _first_picture(session: Session) -> _Wired:
    view = _Wired(session)
    view.ask(*view.window_us)
    return view


def _bytes(view: _Wired) -> int:
    content, buffers = view.sent
    return len(json.dumps(content)) + sum(map(len, buffers))


def _unpickled(path: Path) -> int:
    with path.open("rb") as file:
        return len(pickle.load(file))  # noqa: S301 - written here


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.process_time()
    made = work()
    return time.process_time() - begin, made


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("snapshot", type=Path)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    os.environ["MAIPROF_CACHE"] = "off"
    data = options.snapshot.read_bytes()
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "repeated.pickle"
        made = repeated(pickle.loads(data), options.events)  # noqa: S301 - the user's own
        events = sum(map(len, made["device_traces"]))
        path.write_bytes(pickle.dumps(made, protocol=4))
        del made
        rounds = [measured(path) for _ in range(options.rounds)]
        size = path.stat().st_size
    best = {key: min(one[key] for one in rounds) for key in rounds[0]}
    first = best["load"] + best["replay"] + best["picture"]
    print(f"file: {size / 1e6:.0f} MB, {events} events")
    for base in ("unpickle", "unpickle without collector"):
        print(f"load, replay and first picture / {base}: {first / best[base]:.2f}")
    print(f"replay / load: {best['replay'] / best['load']:.4f}")
    print(f"first picture / load: {best['picture'] / best['load']:.4f}")
    print(f"slowest zoom / load, replay and first picture: {best['zoom'] / first:.4f}")
    print(f"bytes of the first picture: {best['bytes']:.0f}, of a zoom: {best['zoom bytes']:.0f}")


if __name__ == "__main__":
    main()
