"""Makes a big trace by repeating a real one with shifted times and ids.

``python benchmarks/big_trace.py SOURCE.json.gz TARGET.json [COPIES]``
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

_IDS = (
    "correlation",
    "External id",
    "external id",
    "Python id",
    "Python parent id",
    "Ev Idx",
    "Sequence number",
)
_ID_STEP = 10_000_000


def repeated(source: Path, target: Path, copies: int) -> int:
    """Write `copies` copies one after the other in time; return the number of events."""
    raw = source.read_bytes()
    trace = json.loads(gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw)
    events = trace.pop("traceEvents")
    timed = [e for e in events if e.get("ph") == "X"]
    first = min(e["ts"] for e in timed)
    length = max(e["ts"] + e["dur"] for e in timed) - first + 1000
    with target.open("w", encoding="utf-8") as out:
        out.write(json.dumps(trace)[:-1] + ', "traceEvents": [\n')
        for copy in range(copies):
            lines = (json.dumps(_shifted(e, copy, length)) for e in events)
            out.write((",\n" if copy else "") + ",\n".join(lines))
        out.write("\n]}\n")
    return len(events) * copies


def _shifted(event: dict[str, Any], copy: int, length: float) -> dict[str, Any]:
    moved = dict(event)
    if event.get("ph") != "M":
        moved["ts"] = round(event["ts"] + copy * length, 3)
    if event.get("ph") in "sf" and isinstance(event.get("id"), int):
        moved["id"] = event["id"] + copy * _ID_STEP
    args = event.get("args")
    if isinstance(args, dict) and copy:
        ids = {k: args[k] + copy * _ID_STEP for k in _IDS if isinstance(args.get(k), int)}
        moved["args"] = args | ids
    if str(event.get("name", "")).startswith("ProfilerStep#"):
        moved["name"] = f"ProfilerStep#{int(event['name'][13:]) + copy * 1000}"
    return moved


if __name__ == "__main__":
    number = repeated(Path(sys.argv[1]), Path(sys.argv[2]), int((sys.argv[3:] or ["5"])[0]))
    print(f"{number} events, {Path(sys.argv[2]).stat().st_size / 1e6:.0f} MB")
