"""Reads several big files at once, each in a process of its own, into the cache.

A separate program is started (`ahead_worker`), and not this one forked: notebooks have threads,
and scripts need no guard round their first line.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
from collections.abc import Sequence
from typing import IO, cast

import fsspec

from maiprof_nb.loading import cache, progress

WORTH_BYTES = 48 * 2**20  # as stored; less is read before a process has started


def read_ahead(names: Sequence[str]) -> None:
    """Have what is not cached read by as many processes as there are cores, if that pays.

    What a process cannot read is left for the caller to find out.
    """
    cores = os.cpu_count() or 1
    if cache.folder() is None or cores < 2 or len(names) < 2:
        return
    sizes = {name: _size(name) for name in names if cache.fetch(name) is None}
    if len(sizes) < 2 or sum(sizes.values()) < WORTH_BYTES:
        return
    _run([share for share in _shares(sizes, cores) if share])


def _size(name: str) -> int:
    try:
        system, path = fsspec.core.url_to_fs(name)
        return int(system.size(path) or 0)
    except (OSError, ValueError, ImportError):
        return 0


def _shares(sizes: dict[str, int], count: int) -> list[list[str]]:
    """Files for each process, the largest first, each to the one with least to do."""
    shares: list[list[str]] = [[] for _ in range(count)]
    loads = [0] * count
    for name in sorted(sizes, key=lambda one: -sizes[one]):
        least = loads.index(min(loads))
        shares[least].append(name)
        loads[least] += sizes[name]
    return shares


def _run(shares: list[list[str]]) -> None:
    command = [sys.executable, "-m", "maiprof_nb.loading.ahead_worker"]
    running = [
        subprocess.Popen(  # noqa: S603 - this interpreter, on paths as arguments
            [*command, *share], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        for share in shares
    ]
    done = dict.fromkeys(range(len(running)), 0.0)
    try:
        with selectors.DefaultSelector() as waiting:
            for number, process in enumerate(running):
                waiting.register(cast("IO[str]", process.stdout), selectors.EVENT_READ, number)
            while waiting.get_map():
                for key, _ in waiting.select():
                    line = key.fileobj.readline()  # type: ignore[union-attr]
                    if not line:
                        waiting.unregister(key.fileobj)
                        continue
                    done[key.data] = float(line)
                    progress.report(sum(done.values()), len(done))
    finally:
        for process in running:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
