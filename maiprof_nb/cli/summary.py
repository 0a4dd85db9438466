"""``maiprof summary PATH...``: what each recording holds, for people or as JSON Lines."""

from __future__ import annotations

import argparse
import json
from typing import Any

import pandas as pd

from maiprof_nb import load, units
from maiprof_nb.cli import _progress
from maiprof_nb.cli._text import printable
from maiprof_nb.errors import MaiprofError
from maiprof_nb.recording import Recording
from maiprof_nb.session import Session
from maiprof_nb.trust import checks


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser("summary", help="say what recordings hold")
    parser.add_argument("paths", nargs="+", metavar="PATH", help="file, folder or URL")
    parser.add_argument("--json", action="store_true", help="one JSON object a PATH, in order")
    parser.add_argument(
        "--zone",
        metavar="NAME",
        help="time zone of logs with local time stamps, e.g. Europe/Berlin or +02:00",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print one summary a path; 2 if any path could not be read."""
    failed = False
    for path in options.paths:
        found, faults = _summary(path, options.zone, with_checks=not options.json)
        failed = failed or "error" in found
        print(json.dumps(found) if options.json else printable(_in_words(found, faults)))
    return 2 if failed else 0


def _summary(
    path: str, zone: str | None, *, with_checks: bool
) -> tuple[dict[str, Any], list[tuple[Any, str]]]:
    """What the JSON says, and for people the failed checks with the number of their recording."""
    try:
        with _progress.shown(path) as report:
            session = load(path, zone=zone, report=report)
    except MaiprofError as problem:
        return {"source": path, "error": problem.sentence}, []
    return _contents(path, session), _faults(session) if with_checks else []


def _faults(session: Session) -> list[tuple[Any, str]]:
    found = checks(session)
    failed = found[found["outcome"] == "failed"]
    return [
        (None if recording is pd.NA else recording, f"check failed ({name}): {reason}")
        for recording, name, reason in failed[["recording", "id", "reason"]].itertuples(index=False)
    ]


def _contents(path: str, session: Session) -> dict[str, Any]:
    return {
        "source": path,
        "recordings": [_recording(recording) for recording in session.recordings],
        "ranks": session.ranks,
        "steps": _steps(session),
        "span_ns": session.span.dur_ns,
    }


def _steps(session: Session) -> int:
    """Distinct steps; ranks of one job share their steps."""
    return int(session.table("steps")["step"].nunique())


def _recording(recording: Recording) -> dict[str, Any]:
    return {
        "source": recording.source,
        "kind": recording.kind,
        "rank": recording.rank,
        "span_ns": recording.span.dur_ns,
        "events": dict(recording.events),
        "tables": {name: len(table) for name, table in recording.tables.items()},
        "notes": [
            {"code": note.code, "count": note.count, "text": note.text} for note in recording.notes
        ],
    }


def _in_words(found: dict[str, Any], faults: list[tuple[Any, str]]) -> str:
    if "error" in found:
        return f"{found['source']}\n  cannot be read: {found['error']}"
    lines = [
        f"{found['source']}",
        f"  {len(found['recordings'])} recording(s), {units.duration(found['span_ns'])}, "
        f"{found['steps']} steps, ranks {', '.join(map(str, found['ranks'])) or 'not stated'}",
    ]
    lines += [f"  {fault}" for recording, fault in faults if recording is None]
    for number, one in enumerate(found["recordings"]):
        rank = "" if one["rank"] is None else f", rank {one['rank']}"
        lines.append(f"  {one['kind']}{rank}: {one['source']}")
        rows = [f"{units.count(n)} {name}" for name, n in one["tables"].items() if n]
        lines.append(f"    {', '.join(rows) or 'nothing'}")
        lines += [
            f"    note ({note['code']}, {note['count']}): {note['text']}" for note in one["notes"]
        ]
        lines += [f"    {fault}" for recording, fault in faults if recording == number]
    return "\n".join(lines)
