"""Small files of every format, and what damage, editors and attackers make of them."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from maiprof_nb.loading import sources
from tests.conftest import CORPUS, REPOSITORY

MAX_BYTES = 40_000  # of a seed; larger ones are slow and no more various
TOKENS = (
    b"\0", b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\n", b"\r", b",", b'"', b"'", b"\\", b"{",
    b"}", b"[", b"]", b":", b"#", b"-", b"NaN", b"-Infinity", b"null", b"true", b"1e308", b"-1e999",
    b"9" * 19, b"9" * 400, b"-1", b"0x", b"\\ud800", b"\\u0000", b"<script>", b"\x1b[31m",
    b"2038/01/19 03:14:08", b"9999/99/99 99:99:99.999", b"[N/A]", b" ", b"\t", b"\xe2\x80\xa8",
    b"(" * 50, b"]" * 50, b"[" * 3_000, b'{"a":' * 3_000, b"\x85", b"\x94", b".", b"\x80\x04",
)  # fmt: skip


def seeds() -> list[tuple[str, bytes]]:
    """Small files of the samples and, where there is one, of the corpus."""
    found = [("generated", _trace()), *_BY_HAND.items()]
    for root in (REPOSITORY / "sample_traces", CORPUS):
        for path in sorted(root.rglob("*")) if root.is_dir() else []:
            if path.is_file() and path.suffix not in {".py", ".md"}:
                found += _seed(path)
    return found


_BY_HAND = {  # dialects with no small public file; lines as their tools print them
    "memory-timeline": b"[[-1, 1, 37888, 7], [1696966047096061874, 2, 512, 0], "
    b"[1696966047096071874, 3, -512, 0], [1696966047096071874, 3, 512, 5], "
    b"[1696966048083248105, 4, -512, 5]]",
    "memory-timeline in sums": b"[[1795989561896883, 1795989561896883, 1795989561897281], "
    b"[[0, 76840, 0, 0, 0, 0, 0, 0, 0], [0, 76840, 0, 8192, 0, 0, 0, 0, 0], "
    b"[0, 76840, 0, 0, 0, 0, 0, 0, 0]]]",
    "prometheus": b'{"status":"success","data":{"resultType":"matrix","result":[{"metric":'
    b'{"__name__":"DCGM_FI_DEV_GPU_UTIL","gpu":"0","UUID":"GPU-1","Hostname":"a"},'
    b'"values":[[1700000000,"73.5"],[1700000001.5,"NaN"],[1700000003,"70"]]}]}}',
    "rocm-smi": b"device,Temperature (Sensor edge) (C),GPU use (%),VRAM Total Memory (B)\n"
    b"card0,45.0,3,17163091968\ncard1,46.0,99,17163091968\n",
    "wandb": b'{"system.gpu.0.gpu": 1.0, "_timestamp": 1700000000.5, "_runtime": 3.5}\n'
    b'{"system.gpu.0.gpu": 99, "system.gpu.1.gpu": 5, "_timestamp": 1700000002, "_runtime": 5}\n',
}


def _seed(path: Path) -> Iterator[tuple[str, bytes]]:
    if path.stat().st_size > 10 * MAX_BYTES:
        return
    data = sources.content(str(path))[0]
    if len(data) > MAX_BYTES and not data.startswith((b"\x80", b"{", b"[")):
        data = data[: data.rindex(b"\n", 0, MAX_BYTES) + 1] if b"\n" in data[:MAX_BYTES] else b""
    if 0 < len(data) <= MAX_BYTES:
        yield path.name, data


def _trace() -> bytes:
    """Every kind of event once, with the details readers look at."""
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 2, "ts": 1.5, "dur": 9,
         "args": {"External id": 7, "Sequence number": 3, "Input Dims": [[2, 3], []]}},
        {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 2, "ts": 1,
         "dur": 99, "args": {"External id": 6}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 2, "ts": 2,
         "dur": 1, "args": {"correlation": 11, "External id": 7}},
        {"ph": "X", "cat": "kernel", "name": "sgemm", "pid": 0, "tid": 7, "ts": 5, "dur": 3,
         "args": {"device": 0, "stream": 7, "correlation": 11, "blocks per SM": 1.5}},
        {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "pid": 0, "tid": "stream 8",
         "ts": 9, "dur": 3, "args": {"bytes": 4096, "correlation": 12}},
        {"ph": "X", "cat": "python_function", "name": "a.py(3): f", "pid": 1, "tid": 2, "ts": 1,
         "dur": 50, "args": {"Python id": 1, "Python parent id": None}},
        {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 2, "ts": 3,
         "s": "t", "args": {"Bytes": 512, "Addr": 140_000, "Device Type": 1, "Device Id": 0}},
        {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 11, "pid": 1, "tid": 2, "ts": 2},
        {"ph": "f", "cat": "ac2g", "name": "ac2g", "id": 11, "pid": 0, "tid": 7, "ts": 5},
        {"ph": "C", "name": "GPU util", "pid": 0, "ts": 4, "args": {"a": 1.5, "b": 2}},
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python"}},
    ]  # fmt: skip
    about = {"schemaVersion": 1, "distributedInfo": {"rank": 3}, "baseTimeNanoseconds": 1_000}
    return json.dumps(about | {"traceEvents": events}).encode()


def mutated(data: bytes, other: bytes, dice: random.Random, most: int = 4) -> bytes:
    """`data` with one to `most` changes."""
    made = bytearray(data)
    for _ in range(dice.randint(1, most)):
        start = dice.randint(0, len(made))
        end = min(len(made), start + dice.choice((1, 1, 2, 8, 64, 1_000)))
        dice.choice(CHANGES)(made, start, end, other, dice)
    return bytes(made)


def _flip(made: bytearray, start: int, end: int, other: bytes, dice: random.Random) -> None:
    if start < len(made):
        made[start] ^= 1 << dice.randrange(8)


def _replace(made: bytearray, start: int, end: int, other: bytes, dice: random.Random) -> None:
    made[start : start + 1] = bytes([dice.randrange(256)])


def _delete(made: bytearray, start: int, end: int, other: bytes, dice: random.Random) -> None:
    del made[start:end]


def _repeat(made: bytearray, start: int, end: int, other: bytes, dice: random.Random) -> None:
    made[start:start] = made[start:end]


def _insert(made: bytearray, start: int, end: int, other: bytes, dice: random.Random) -> None:
    made[start:start] = dice.choice(TOKENS)


def _overwrite(made: bytearray, start: int, end: int, other: bytes, dice: random.Random) -> None:
    made[start:end] = dice.choice(TOKENS)


def _cut(made: bytearray, start: int, end: int, other: bytes, dice: random.Random) -> None:
    if dice.random() < 0.3:
        del made[start:]


def _splice(made: bytearray, start: int, end: int, other: bytes, dice: random.Random) -> None:
    at = dice.randint(0, len(other))
    made[start:end] = other[at : at + (end - start)]


CHANGES = (_flip, _replace, _delete, _repeat, _insert, _overwrite, _cut, _splice)

_ODD_VALUES = (
    None, True, -1, 0, 2**31, 2**63, 2**70, -(2**64), 1.5, 1e308, float("inf"), float("nan"), "",
    "alloc", "free_completed", "N/A", "<script>", "\x1b[31m", "\ud800", b"\xff", [], {}, (), [[]],
    [{}], [None], (1, 2), {"a": 1}, {1: 2}, {(): ()},
)  # fmt: skip


def rearranged(content: Any, dice: random.Random) -> Any:
    """A copy of dicts and lists in which one to four values are missing or something else."""
    made = copy.deepcopy(content)
    for _ in range(dice.randint(1, 4)):
        _change_inside(made, dice)
    return made


def _change_inside(made: Any, dice: random.Random) -> None:
    """Walk down at random and change what is met there."""
    while True:
        keys = list(made) if isinstance(made, dict) else range(len(made))
        if not keys:
            return
        key = dice.choice(keys)
        inner = made[key]
        if isinstance(inner, dict | list) and inner and dice.random() < 0.9:
            made = inner
        elif dice.random() < 0.3:
            del made[key]
            return
        else:
            made[key] = dice.choice((*_ODD_VALUES, made))
            return
